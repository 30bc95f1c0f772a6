// SPDX-License-Identifier: GPL-2.0-or-later
//! Puts records of one capture in the order of their times, within a bounded window.
//!
//! One block is read ahead, so that the first disorder is seen before anything of it was given away.
//! Only from then on are records copied and sorted. A time that goes back by more than a second is no
//! disorder: a clock was set, or captures were concatenated.

use super::block_source::BlockSource;
use super::read_error::ReadError;
use super::record_block::Block;

/// Records that are held back once a capture is in disorder.
const WINDOW: usize = 4096;
/// By how many records a record may be given later than it was read, at most.
pub const SORTED: usize = 4 * WINDOW;
/// A time that goes back by more, ns, is a step of the clock.
const STEP_NS: i64 = 1_000_000_000;

/// A source whose records are in the order of their times.
pub struct Sorted {
    source: BlockSource,
    ahead: Block,
    /// The block ahead has a time before one that came earlier.
    disorder: bool,
    started: bool,
    /// Records that wait, in a capture that is in disorder.
    waiting: Option<Block>,
    latest_ns: i64,
    /// Added to each time, ns.
    offset_ns: i64,
    error: Option<ReadError>,
    epoch: u16,
    /// Records that were put before one that came earlier.
    pub moved: u64,
    /// Earliest and latest time.
    pub span_ns: Option<(i64, i64)>,
    /// A signal came while bytes were awaited: let the caller look at it before the next call.
    pub interrupted: bool,
    sorts: bool,
}

impl Sorted {
    /// Adds `offset_ns` to the times of what `source` gives, and sorts it if `sorts` is set.
    #[must_use]
    pub fn new(source: BlockSource, offset_ns: i64, sorts: bool) -> Self {
        Self {
            source,
            ahead: Block::default(),
            disorder: false,
            started: false,
            waiting: None,
            latest_ns: i64::MIN,
            offset_ns,
            error: None,
            epoch: 0,
            moved: 0,
            span_ns: None,
            interrupted: false,
            sorts,
        }
    }

    /// Ends the capture here.
    pub fn stop(&mut self) {
        self.source.stop();
    }

    /// Times that go back by more than a second.
    #[must_use]
    pub fn steps(&self) -> u64 {
        u64::from(self.epoch)
    }

    /// Fills `block` with the next records, or with none if a signal came; `false` at the end of the
    /// file.
    ///
    /// # Errors
    /// Those of the source, after the records before the error.
    pub fn fill(&mut self, block: &mut Block) -> Result<bool, ReadError> {
        if !self.sorts {
            return self.source.fill(block);
        }
        block.records.clear();
        let again = self.interrupted && self.ahead.records.is_empty();
        if !std::mem::replace(&mut self.started, true) || again {
            self.read_ahead();
            if self.interrupted {
                return Ok(true);
            }
        }
        if self.waiting.is_none() {
            std::mem::swap(block, &mut self.ahead);
            let disorder = self.disorder;
            self.read_ahead();
            if disorder || self.disorder {
                let mut waiting = Block::default();
                append(&mut waiting, block);
                block.records.clear();
                self.waiting = Some(waiting);
            }
        }
        if let Some(waiting) = self.waiting.take_if(|_| !self.interrupted) {
            self.take_waiting(waiting, block);
        }
        match self.error.take_if(|_| block.records.is_empty()) {
            Some(error) => Err(error),
            None => Ok(self.interrupted || !block.records.is_empty()),
        }
    }

    /// Reads the next block; an error waits until the records before it are taken.
    fn read_ahead(&mut self) {
        self.ahead.records.clear();
        self.disorder = false;
        self.interrupted = false;
        if self.error.is_none() {
            let filled = self.source.fill(&mut self.ahead);
            self.interrupted = self.source.take_interrupted();
            self.error = filled.err();
        }
        for record in &mut self.ahead.records {
            record.time_ns = record.time_ns.saturating_add(self.offset_ns);
            if record.time_ns < self.latest_ns {
                if self.latest_ns.saturating_sub(record.time_ns) > STEP_NS {
                    self.epoch = self.epoch.saturating_add(1);
                    self.latest_ns = record.time_ns;
                } else {
                    self.disorder = true;
                    self.moved += 1;
                }
            } else {
                self.latest_ns = record.time_ns;
            }
            record.epoch = self.epoch;
        }
        if let (Some(first), Some(last)) = (self.ahead.records.first(), self.ahead.records.last()) {
            let (from, to) = self.span_ns.unwrap_or((first.time_ns, last.time_ns));
            self.span_ns = Some((from.min(first.time_ns), to.max(last.time_ns)));
        }
    }

    /// Gives the oldest of the records that wait, and keeps a window of them.
    fn take_waiting(&mut self, mut waiting: Block, block: &mut Block) {
        while waiting.records.len() < 2 * WINDOW
            && !self.ahead.records.is_empty()
            && !self.interrupted
        {
            append(&mut waiting, &self.ahead);
            self.read_ahead();
        }
        waiting.records.sort_by_key(|record| (record.epoch, record.time_ns));
        let keep = if self.ahead.records.is_empty() && !self.interrupted { 0 } else { WINDOW };
        let (now, later) = waiting.records.split_at(waiting.records.len().saturating_sub(keep));
        block.data.clear();
        for record in now {
            block.copy(&waiting, record);
        }
        if !later.is_empty() {
            let mut rest = Block::default();
            for record in later {
                rest.copy(&waiting, record);
            }
            self.waiting = Some(rest);
        }
    }
}

fn append(to: &mut Block, from: &Block) {
    for record in &from.records {
        to.copy(from, record);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::reader::Reader;
    use super::*;

    /// A capture with an empty packet at each time, µs.
    fn sorted(times: &[u32]) -> (Vec<i64>, u64, u64) {
        let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
        for time in times {
            for word in [time / 1_000_000, time % 1_000_000, 0, 0] {
                bytes.extend(word.to_le_bytes());
            }
        }
        let reader = Reader::new(Box::new(Cursor::new(bytes)), 0, 256);
        let mut sorted = Sorted::new(BlockSource::Capture(reader), 0, true);
        let (mut block, mut found) = (Block::default(), Vec::new());
        while sorted.fill(&mut block).unwrap() {
            found.extend(block.records.iter().map(|record| record.time_ns / 1000));
        }
        (found, sorted.moved, sorted.steps())
    }

    #[test]
    fn disorder_across_blocks_is_sorted() {
        let mut times: Vec<u32> = (0..20_000).map(|time| time * 10).collect();
        // the first one over the end of a block of 16 records
        for at in [14, 1000, 1001, 19_998] {
            times.swap(at, at + 1);
        }
        let (found, moved, steps) = sorted(&times);
        times.sort_unstable();
        assert_eq!(found, times.into_iter().map(i64::from).collect::<Vec<_>>());
        assert_eq!((moved, steps), (3, 0));
    }

    #[test]
    fn a_step_of_the_clock_stays() {
        let times = [5_000_000, 5_000_002, 5_000_001, 1_000_000, 1_000_003, 1_000_002];
        let (found, moved, steps) = sorted(&times);
        assert_eq!(found, [5_000_000, 5_000_001, 5_000_002, 1_000_000, 1_000_002, 1_000_003]);
        assert_eq!((moved, steps), (2, 1));
    }
}
