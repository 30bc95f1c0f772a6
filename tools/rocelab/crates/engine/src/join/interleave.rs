// SPDX-License-Identifier: GPL-2.0-or-later
//! Interleaves several captures by the time since the first frame of each.
//!
//! Their clocks need not agree: events of about the same time come at about the same time, which is
//! enough for a bounded window.

use crate::read::{Block, ReadError, Reader, Record};

struct Input {
    reader: Reader,
    block: Block,
    next: usize,
    first_ns: Option<i64>,
    ended: bool,
}

impl Input {
    /// Time of the next record since the first one.
    fn peek(&mut self, file: u16, errors: &mut Vec<(u16, ReadError)>) -> Option<i64> {
        while self.next >= self.block.records.len() {
            if self.ended {
                return None;
            }
            self.next = 0;
            match self.reader.fill(&mut self.block) {
                Ok(more) => self.ended = !more,
                Err(error) => {
                    errors.push((file, error));
                    self.ended = true;
                }
            }
        }
        let record = self.block.records.get(self.next)?;
        let first = *self.first_ns.get_or_insert(record.time_ns);
        Some(record.time_ns.saturating_sub(first))
    }
}

pub(super) struct Interleave {
    inputs: Vec<Input>,
    /// Errors, by file.
    pub(super) errors: Vec<(u16, ReadError)>,
}

impl Interleave {
    pub(super) fn new(readers: Vec<Reader>) -> Self {
        let input = |reader| Input {
            reader,
            block: Block::default(),
            next: 0,
            first_ns: None,
            ended: false,
        };
        Self { inputs: readers.into_iter().map(input).collect(), errors: Vec::new() }
    }

    /// The next record and its block.
    pub(super) fn next(&mut self) -> Option<(&Block, Record)> {
        let mut best: Option<(i64, usize)> = None;
        for (at, input) in self.inputs.iter_mut().enumerate() {
            let time = input.peek(at as u16, &mut self.errors);
            if let Some(time) = time.filter(|time| best.is_none_or(|(least, _)| *time < least)) {
                best = Some((time, at));
            }
        }
        let input = self.inputs.get_mut(best?.1)?;
        let record = *input.block.records.get(input.next)?;
        input.next += 1;
        Some((&input.block, record))
    }
}
