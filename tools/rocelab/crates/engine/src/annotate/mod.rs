// SPDX-License-Identifier: GPL-2.0-or-later
//! Copies a capture and adds to each packet what the analysis and the drivers' records say about it
//! (docs/formats/annotate.md).

mod annotator;
mod capture_copy;
mod packet_block;
mod packet_notes;

pub use annotator::{Annotator, Options};
pub use capture_copy::{Copier, CopyError};
pub use packet_notes::{Notes, Written};
