// SPDX-License-Identifier: GPL-2.0-or-later
//! Tells traces of rxedump from other captures, by their beginning.

use std::io::{Cursor, Read as _};

use roce::join::Comment;

use super::account;
use crate::read::{Block, Input, Reader};

/// Enough for rxedump's session and its first packets.
const BEGINNING: usize = 256 << 10;

/// Who wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// rxedump, as its session says.
    Rxedump,
    /// Unknown, but packets have rxedump's comments: an edited trace, or an annotated capture.
    Commented,
    /// Not rxedump.
    Other,
    /// It cannot be read, or has no packet.
    Unknown,
}

/// Says who wrote a file (plain bytes). What cannot be read is left to who reads it whole.
#[must_use]
pub fn origin(input: Input) -> Origin {
    let mut beginning = Vec::new();
    // what was read before an error stays
    let _ = input.take(BEGINNING as u64).read_to_end(&mut beginning);
    if account(&beginning[..]).is_ok_and(|trace| trace.told) {
        return Origin::Rxedump;
    }
    let mut reader = Reader::new(Box::new(Cursor::new(beginning)), 0, BEGINNING);
    let mut block = Block::default();
    // it ends within a record, and the records before that are in the block
    let _ = reader.fill(&mut block);
    let recorded = |record| block.comment(record).is_some_and(|text| Comment::parse(text).is_ok());
    match block.records.iter().any(recorded) {
        true => Origin::Commented,
        false if block.records.is_empty() => Origin::Unknown,
        false => Origin::Other,
    }
}
