// SPDX-License-Identifier: GPL-2.0-or-later
//! Merges several captures in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::read_error::ReadError;
use super::record_block::Block;
use super::sorted::Sorted;

struct Input {
    reader: Sorted,
    block: Block,
    next: usize,
}

impl Input {
    /// The time of the next record; reads the next block if this one is used up.
    fn peek(&mut self, file: u16, errors: &mut Vec<(u16, ReadError)>) -> Option<i64> {
        while self.next >= self.block.records.len() {
            self.next = 0;
            match self.reader.fill(&mut self.block) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    errors.push((file, error));
                    if self.block.records.is_empty() {
                        return None;
                    }
                }
            }
        }
        self.block.records.get(self.next).map(|record| record.time_ns)
    }
}

/// Reads files in parallel; records with equal times keep the order of the files.
pub struct Merge {
    inputs: Vec<Input>,
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    started: bool,
    piece: usize,
    /// Errors, by file; the records before an error are merged.
    pub errors: Vec<(u16, ReadError)>,
}

impl Merge {
    /// Merges `readers` into blocks of about `piece` bytes.
    #[must_use]
    pub fn new(readers: Vec<Sorted>, piece: usize) -> Self {
        let inputs = readers
            .into_iter()
            .map(|reader| Input { reader, block: Block::default(), next: 0 })
            .collect();
        Self { inputs, heap: BinaryHeap::new(), started: false, piece, errors: Vec::new() }
    }

    /// A signal came while bytes were awaited.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.inputs.iter().any(|input| input.reader.interrupted)
    }

    /// Ends all captures here.
    pub fn stop(&mut self) {
        for input in &mut self.inputs {
            input.reader.stop();
        }
    }

    /// Earliest and latest time of each file.
    pub fn spans_ns(&self) -> impl Iterator<Item = Option<(i64, i64)>> + '_ {
        self.inputs.iter().map(|input| input.reader.span_ns)
    }

    /// Records that were put into order, and steps of clocks.
    #[must_use]
    pub fn disorder(&self) -> (u64, u64) {
        let both = |input: &Input| (input.reader.moved, input.reader.steps());
        self.inputs.iter().map(both).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Fills `block` with the next records; `false` at the end of all files.
    pub fn fill(&mut self, block: &mut Block) -> bool {
        if let [only] = &mut self.inputs[..] {
            return match only.reader.fill(block) {
                Ok(more) => more,
                Err(error) => {
                    self.errors.push((0, error));
                    !block.records.is_empty()
                }
            };
        }
        if !self.started {
            self.started = true;
            for index in 0..self.inputs.len() {
                self.push(index);
            }
        }
        block.data.clear();
        block.records.clear();
        // counted as captured: the blocks of excerpts are those of their captures
        let mut filled = 0;
        while filled < self.piece {
            let Some(Reverse((_, index))) = self.heap.pop() else { break };
            let input = &mut self.inputs[index];
            let record = input.block.records[input.next];
            block.copy(&input.block, &record);
            filled += record.len as usize;
            input.next += 1;
            self.push(index);
        }
        !block.records.is_empty()
    }

    fn push(&mut self, index: usize) {
        if let Some(time) = self.inputs[index].peek(index as u16, &mut self.errors) {
            self.heap.push(Reverse((time, index)));
        }
    }
}
