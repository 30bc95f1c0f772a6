// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads blocks, and decodes and verifies them, on as many threads as there are: batches in capture order.

use std::sync::Arc;

use crate::batch::{Batch, DecodeOptions};
use crate::read::Merge;
use crate::workers::Workers;

/// What comes next.
pub(crate) enum Next {
    Batch(Batch),
    /// A batch that the caller decodes.
    Undecoded(Batch, Arc<DecodeOptions>),
    /// Nothing for now: a signal came, or bytes are awaited.
    Nothing,
    End,
}

/// Captures as decoded batches.
pub(crate) struct Decoded {
    pub(crate) merge: Merge,
    decoding: Arc<DecodeOptions>,
    /// Threads that decode; without any, the caller's does.
    decoders: usize,
    workers: Option<Workers>,
    /// Batches that are not in progress.
    pub(crate) idle: Vec<Batch>,
    started: bool,
}

impl Decoded {
    /// Uses so many threads and batches.
    pub(crate) fn new(
        merge: Merge,
        decoding: DecodeOptions,
        decoders: usize,
        batches: usize,
    ) -> Self {
        Self {
            merge,
            decoding: Arc::new(decoding),
            decoders,
            workers: None,
            idle: (0..batches).map(|_| Batch::default()).collect(),
            started: false,
        }
    }

    /// Whether [`Self::next`] can give something without another idle batch.
    pub(crate) fn goes_on(&self) -> bool {
        !self.idle.is_empty() || self.workers.as_ref().is_some_and(Workers::are_busy)
    }

    /// The next batch, which comes back by [`Self::idle`]. With `hands_on`, one that nobody else would decode
    /// comes as it is, for [`Batch::decode`] with [`Self::decoding`].
    pub(crate) fn next(&mut self, hands_on: bool) -> Next {
        while let Some(mut batch) = self.idle.pop() {
            if !self.merge.fill(&mut batch.block) {
                self.idle.push(batch);
                break;
            }
            if !self.started {
                self.start(&batch);
            }
            if batch.block.records.is_empty() {
                self.idle.push(batch);
                return Next::Nothing;
            }
            let Some(workers) = &mut self.workers else {
                if hands_on {
                    return Next::Undecoded(batch, Arc::clone(&self.decoding));
                }
                batch.decode(&self.decoding);
                return Next::Batch(batch);
            };
            workers.submit(batch);
            if self.merge.interrupted() {
                return Next::Nothing;
            }
        }
        self.workers.as_mut().and_then(Workers::next).map_or(Next::End, Next::Batch)
    }

    /// Sets the time of the first packet, from which a filter counts, and starts the workers.
    fn start(&mut self, batch: &Batch) {
        self.started = true;
        let first_ns = batch.block.records.first().map_or(0, |record| record.time_ns);
        if let Some(options) = Arc::get_mut(&mut self.decoding) {
            options.filter.begin(first_ns);
        }
        if self.decoders > 0 {
            // without threads the result is the same, only later
            self.workers = Workers::new(self.decoders, &self.decoding).ok();
        }
    }
}
