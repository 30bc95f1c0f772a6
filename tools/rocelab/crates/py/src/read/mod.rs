// SPDX-License-Identifier: GPL-2.0-or-later
//! Capture files as blocks of records: pcap and pcapng, compressed or not, one or many.
//!
//! Files are read in large pieces, never mapped: a file cut while it is read ends early, no more.

mod block;
mod compress;
mod error;
mod merge;
mod pcap;
mod pcapng;
mod source;

pub use block::{Block, NO_COMMENT, Record};
pub use compress::{Counter, Input, open_compressed};
pub use error::ReadError;
pub use merge::Merge;
pub use source::Reader;
