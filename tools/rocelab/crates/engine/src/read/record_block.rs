// SPDX-License-Identifier: GPL-2.0-or-later
//! A piece of a capture and its records.

use roce::{Link, Wrapped, unwrapped};

/// Value of [`Record::comment`] for a record without one.
pub const NO_COMMENT: (u32, u16) = (0, 0);

/// One captured frame within a [`Block`].
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Offset of its bytes in the block.
    pub offset: u32,
    /// Bytes captured.
    pub len: u32,
    /// Bytes on the wire.
    pub wire_len: u32,
    /// Its comment in the block: offset and length.
    pub comment: (u32, u16),
    /// Index of the file.
    pub file: u16,
    /// Steps of the clock before it.
    pub epoch: u16,
    /// Link layer.
    pub link: Link,
    /// The interface of a file that has several, from 1; 0: unknown.
    pub interface: u32,
    /// Bytes of payload that its excerpt has left out.
    pub elided: u32,
    /// Its ICRC was found to be correct when its excerpt was written.
    pub verified: bool,
    /// Nanoseconds since 1970.
    pub time_ns: i64,
    /// Wireshark's frame number in that file, from 1.
    pub number: u64,
}

impl Record {
    /// What most records have in common: no comment, and nothing left out.
    pub(super) const PLAIN: Self = Self {
        offset: 0,
        len: 0,
        wire_len: 0,
        comment: NO_COMMENT,
        file: 0,
        epoch: 0,
        link: Link::Ethernet,
        interface: 0,
        elided: 0,
        verified: false,
        time_ns: 0,
        number: 0,
    };

    /// The frame without the `fcs` bytes of its check sequence, which its file declares.
    #[must_use]
    #[inline]
    pub(super) fn without_fcs(self, fcs: u32) -> Self {
        let wire_len = self.wire_len.saturating_sub(fcs);
        Self { wire_len, len: self.len.min(wire_len), ..self }
    }

    /// The frame in a record of a link type that wraps frames, at the time in it, which is more exact; other
    /// records as they are. `data` has the bytes from offset `base` of the block on.
    #[must_use]
    #[inline]
    pub(super) fn unwrapped(self, data: &[u8], base: usize) -> Self {
        if !self.link.wraps() {
            return self;
        }
        let from = self.offset as usize - base;
        let record = data.get(from..from + self.len as usize).unwrap_or_default();
        let Some(found) = unwrapped(self.link, record, self.wire_len) else { return self };
        let Wrapped { link, offset, len, wire_len, time_ns } = found;
        Self {
            link,
            offset: self.offset + offset as u32,
            len: len as u32,
            wire_len,
            time_ns: time_ns.unwrap_or(self.time_ns),
            ..self
        }
    }
}

/// A piece of a capture and the records in it; reused from piece to piece.
#[derive(Debug, Default)]
pub struct Block {
    /// Raw bytes, as read.
    pub data: Vec<u8>,
    /// The frames that lie wholly in `data`.
    pub records: Vec<Record>,
}

impl Block {
    /// The captured bytes of a record of this block, without those that an excerpt has left out.
    #[must_use]
    #[inline]
    pub fn frame(&self, record: &Record) -> &[u8] {
        let from = record.offset as usize;
        let len = record.len - record.elided;
        self.data.get(from..from + len as usize).unwrap_or_default()
    }

    /// The record's comment, if it has one.
    #[must_use]
    pub fn comment(&self, record: &Record) -> Option<&[u8]> {
        let (from, len) = record.comment;
        if record.comment == NO_COMMENT {
            return None;
        }
        self.data.get(from as usize..from as usize + usize::from(len))
    }

    /// Appends a copy of a record of another block.
    pub fn copy(&mut self, other: &Self, record: &Record) {
        let mut copy = *record;
        copy.offset = self.data.len() as u32;
        self.data.extend_from_slice(other.frame(record));
        if let Some(comment) = other.comment(record) {
            copy.comment.0 = self.data.len() as u32;
            self.data.extend_from_slice(comment);
        }
        self.records.push(copy);
    }
}
