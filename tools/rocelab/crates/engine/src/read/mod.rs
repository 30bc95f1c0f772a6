// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads capture files as blocks of records: pcap and pcapng, compressed or not, one or many.
//!
//! Files are read in large pieces, never mapped: a file that is truncated meanwhile only ends early.

mod block_source;
mod decompress;
mod erf_file;
mod excerpt;
mod excerpt_reader;
mod merge;
mod parse_step;
mod pcap;
mod pcapng;
mod read_error;
mod reader;
mod record_block;
mod sorted;
mod unchanged;

pub use block_source::BlockSource;
pub use decompress::{Counter, Input, open_compressed};
pub use excerpt::write_excerpt;
pub use excerpt_reader::ExcerptReader;
pub use merge::{Merge, Opener};
pub use read_error::ReadError;
pub use reader::Reader;
pub use record_block::{Block, NO_COMMENT, Record};
pub use sorted::{SORTED, Sorted};
pub use unchanged::Unchanged;
