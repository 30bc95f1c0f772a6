// SPDX-License-Identifier: GPL-2.0-or-later
//! Merges several captures in time order, or reads one behind the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::read_error::ReadError;
use super::record_block::Block;
use super::sorted::Sorted;

/// Opens a capture, as often as it is called.
pub type Opener = Box<dyn Fn() -> io::Result<Sorted> + Send + Sync>;

/// What is known of a reader after its end.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    span_ns: Option<(i64, i64)>,
    moved: u64,
    steps: u64,
}

#[derive(Default)]
struct Input {
    /// None before it is needed, and after its end.
    reader: Option<Sorted>,
    /// Only of captures that are not kept open; none after their end.
    opener: Option<Opener>,
    account: Account,
    block: Block,
    next: usize,
}

impl Input {
    fn opened(reader: Sorted) -> Self {
        Self { reader: Some(reader), ..Self::default() }
    }

    /// The time of the next record; reads the next block if this one is used up.
    fn peek(&mut self, file: u16, errors: &mut Vec<(u16, ReadError)>) -> Option<i64> {
        while self.next >= self.block.records.len() {
            self.next = 0;
            let more = match self.fill() {
                Ok(more) => more,
                Err(error) => {
                    errors.push((file, error));
                    !self.block.records.is_empty()
                }
            };
            if !more {
                self.end();
                return None;
            }
        }
        self.block.records.get(self.next).map(|record| record.time_ns)
    }

    fn fill(&mut self) -> Result<bool, ReadError> {
        if let (None, Some(opener)) = (&self.reader, &self.opener) {
            self.reader = Some(opener()?);
        }
        self.reader.as_mut().map_or(Ok(false), |reader| reader.fill(&mut self.block))
    }

    /// The time of the first record, of a capture that is then closed and read from its beginning when it is
    /// needed.
    fn look(&mut self, file: u16, errors: &mut Vec<(u16, ReadError)>) -> Option<i64> {
        let mut early = Vec::new();
        let first = self.peek(file, &mut early);
        if first.is_some() {
            *self = Self { opener: self.opener.take(), ..Self::default() };
        } else {
            errors.append(&mut early);
        }
        first
    }

    /// Keeps nothing but the account.
    fn end(&mut self) {
        *self = Self { account: self.account(), ..Self::default() };
    }

    fn account(&self) -> Account {
        self.reader.as_ref().map_or(self.account, |reader| Account {
            span_ns: reader.span_ns,
            moved: reader.moved,
            steps: reader.steps(),
        })
    }
}

/// Reads files in parallel; records with equal times keep the order of the files.
pub struct Merge {
    inputs: Vec<Input>,
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    started: bool,
    piece: usize,
    /// Captures that ended before another one was appended.
    past: Vec<Account>,
    /// Errors, by file; the records before an error are merged.
    pub errors: Vec<(u16, ReadError)>,
}

impl Merge {
    /// Merges `readers` into blocks of about `piece` bytes.
    #[must_use]
    pub fn new(readers: Vec<Sorted>, piece: usize) -> Self {
        Self::over(readers.into_iter().map(Input::opened).collect(), piece)
    }

    /// The same of captures that are open only while their time has come: parts of a long capture are so many
    /// that a process could not open all.
    #[must_use]
    pub fn of_parts(openers: Vec<Opener>, piece: usize) -> Self {
        let input = |opener| Input { opener: Some(opener), ..Input::default() };
        Self::over(openers.into_iter().map(input).collect(), piece)
    }

    fn over(inputs: Vec<Input>, piece: usize) -> Self {
        let (heap, past) = (BinaryHeap::new(), Vec::new());
        Self { inputs, heap, started: false, piece, past, errors: Vec::new() }
    }

    /// Goes on with another capture, when all before it have ended.
    pub fn append(&mut self, reader: Sorted) {
        self.past.extend(self.inputs.drain(..).map(|input| input.account()));
        self.inputs.push(Input::opened(reader));
    }

    /// Captures so far.
    #[must_use]
    pub fn captures(&self) -> usize {
        self.past.len() + self.inputs.len()
    }

    /// A signal came while bytes were awaited.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.inputs.iter().filter_map(|input| input.reader.as_ref()).any(|one| one.interrupted)
    }

    /// Ends all captures here.
    pub fn stop(&mut self) {
        for input in &mut self.inputs {
            match &mut input.reader {
                Some(reader) => reader.stop(),
                None => input.end(),
            }
        }
    }

    fn accounts(&self) -> impl Iterator<Item = Account> + '_ {
        self.past.iter().copied().chain(self.inputs.iter().map(Input::account))
    }

    /// Earliest and latest time of each file.
    pub fn spans_ns(&self) -> impl Iterator<Item = Option<(i64, i64)>> + '_ {
        self.accounts().map(|account| account.span_ns)
    }

    /// Records that were put into order, and steps of clocks.
    #[must_use]
    pub fn disorder(&self) -> (u64, u64) {
        self.accounts().fold((0, 0), |sum, one| (sum.0 + one.moved, sum.1 + one.steps))
    }

    /// Fills `block` with the next records; `false` at the end of all files.
    pub fn fill(&mut self, block: &mut Block) -> bool {
        let before = self.past.len() as u16;
        if let [Input { reader: Some(only), .. }] = &mut self.inputs[..] {
            return match only.fill(block) {
                Ok(more) => more,
                Err(error) => {
                    self.errors.push((before, error));
                    !block.records.is_empty()
                }
            };
        }
        if !self.started {
            self.started = true;
            for (index, input) in self.inputs.iter_mut().enumerate() {
                let first = match input.opener {
                    Some(_) => input.look(index as u16, &mut self.errors),
                    None => input.peek(index as u16, &mut self.errors),
                };
                self.heap.extend(first.map(|time| Reverse((time, index))));
            }
        }
        block.data.clear();
        block.records.clear();
        // counted as captured: the blocks of excerpts are those of their captures
        let mut filled = 0;
        while filled < self.piece {
            let Some(Reverse((_, index))) = self.heap.pop() else { break };
            let input = &mut self.inputs[index];
            // one that was only looked at is opened here
            if input.peek(index as u16, &mut self.errors).is_some() {
                let record = input.block.records[input.next];
                block.copy(&input.block, &record);
                filled += record.len as usize;
                input.next += 1;
            }
            let next = input.peek(index as u16, &mut self.errors);
            self.heap.extend(next.map(|time| Reverse((time, index))));
        }
        !block.records.is_empty()
    }
}
