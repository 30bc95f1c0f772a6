// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads an excerpt ([`super::excerpt`]) into the blocks of its capture, without payloads.

use std::io::{self, BufReader, Read as _};

use super::decompress::Input;
use super::excerpt::{MAGIC, RECORD, link_of};
use super::pcap::MAX_RECORD;
use super::read_error::ReadError;
use super::record_block::{Block, Record};

/// Bytes that are read at a time.
const BUFFER: usize = 256 << 10;
/// A block of more bytes is none of ours: a piece of a capture, and its longest record.
const MAX_BLOCK: usize = 4 * MAX_RECORD as usize;

/// Reads one excerpt.
pub struct ExcerptReader {
    input: BufReader<Input>,
    file: u16,
    started: bool,
    ended: bool,
    body: Vec<u8>,
}

impl ExcerptReader {
    /// A reader of the excerpt of the capture with this index.
    #[must_use]
    pub fn new(input: Input, file: u16) -> Self {
        let input = BufReader::with_capacity(BUFFER, input);
        Self { input, file, started: false, ended: false, body: Vec::new() }
    }

    /// Ends the capture here.
    pub fn stop(&mut self) {
        self.ended = true;
    }

    /// Fills `block` with the next records; `false` at the end.
    ///
    /// # Errors
    /// What was wrong with the capture, after the records before that, or what is wrong with the
    /// excerpt. The next call is at the end.
    pub fn fill(&mut self, block: &mut Block) -> Result<bool, ReadError> {
        block.records.clear();
        block.data.clear();
        if self.ended {
            return Ok(false);
        }
        let filled = self.next(block);
        self.ended = !matches!(filled, Ok(true));
        filled
    }

    fn next(&mut self, block: &mut Block) -> Result<bool, ReadError> {
        if !std::mem::replace(&mut self.started, true) {
            let mut magic = [0; MAGIC.len()];
            self.input.read_exact(&mut magic)?;
            if magic != *MAGIC {
                return Err(broken());
            }
        }
        let mut head = [0; 12];
        self.input.read_exact(&mut head)?;
        if head == [0; 12] {
            return Ok(false);
        }
        let [count, len, wrong] = [0, 4, 8].map(|at| number(&head, at).unwrap_or(0) as usize);
        if len.saturating_add(wrong) > MAX_BLOCK {
            return Err(broken());
        }
        self.body.resize(len + wrong, 0);
        self.input.read_exact(&mut self.body)?;
        let (mut rest, wrong) = self.body.split_at(len);
        for _ in 0..count {
            rest = take(rest, self.file, block).ok_or_else(broken)?;
        }
        if wrong.is_empty() {
            return Ok(true);
        }
        Err(ReadError::Reported(String::from_utf8_lossy(wrong).into_owned()))
    }
}

/// The number of 32 bits at `at`.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn broken() -> ReadError {
    io::Error::other("the excerpt of the capture is broken").into()
}

/// Appends the first record of `rest`; returns what follows it.
fn take<'a>(rest: &'a [u8], file: u16, block: &mut Block) -> Option<&'a [u8]> {
    let (head, rest) = rest.split_first_chunk::<RECORD>()?;
    let number = |at| number(head, at);
    let long = |at| Some(u64::from(number(at)?) | u64::from(number(at + 4)?) << 32);
    let (len, wire_len) = (number(16)?, number(20)?);
    let (start, rest) = rest.split_at_checked(number(24)? as usize)?;
    let (end, rest) = rest.split_at_checked(number(28)? as usize)?;
    let elided = len.checked_sub((start.len() + end.len()) as u32)?;
    let offset = block.data.len();
    block.data.extend_from_slice(start);
    block.data.extend_from_slice(end);
    block.records.push(Record {
        offset: offset as u32,
        len,
        wire_len,
        file,
        link: link_of(number(32)?),
        interface: number(40)?,
        elided,
        verified: number(36)? == 1,
        time_ns: long(0)? as i64,
        number: long(8)?,
        ..Record::PLAIN
    });
    Some(rest)
}
