// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the records of a capture come from: the capture itself, or an excerpt of it.

use super::excerpt_reader::ExcerptReader;
use super::read_error::ReadError;
use super::reader::Reader;
use super::record_block::Block;

/// A capture or its excerpt; both give the same blocks of records.
pub enum BlockSource {
    /// A capture.
    Capture(Reader),
    /// What [`super::write_excerpt`] has left of one.
    Excerpt(ExcerptReader),
}

impl BlockSource {
    /// Ends the capture here.
    pub(super) fn stop(&mut self) {
        match self {
            Self::Capture(reader) => reader.stop(),
            Self::Excerpt(reader) => reader.stop(),
        }
    }

    /// Fills `block` with the next records, or with none if a signal came; `false` at the end.
    ///
    /// # Errors
    /// Those of [`Reader::fill`] and [`ExcerptReader::fill`].
    pub(super) fn fill(&mut self, block: &mut Block) -> Result<bool, ReadError> {
        match self {
            Self::Capture(reader) => reader.fill(block),
            Self::Excerpt(reader) => reader.fill(block),
        }
    }

    /// Whether a signal came while bytes were awaited, since this was asked last.
    pub(super) fn take_interrupted(&mut self) -> bool {
        match self {
            Self::Capture(reader) => std::mem::take(&mut reader.interrupted),
            Self::Excerpt(_) => false,
        }
    }
}
