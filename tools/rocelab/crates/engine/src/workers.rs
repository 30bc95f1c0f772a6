// SPDX-License-Identifier: GPL-2.0-or-later
//! Threads that decode batches while the caller reads the next ones and follows the last ones.
//!
//! Batches go to the workers in turn and return in turn, so they stay in order.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::batch::{Batch, DecodeOptions};

struct Worker {
    to: Option<Sender<Batch>>,
    /// Never locked: a Python object must be `Sync`, although nothing shares it.
    from: Mutex<Receiver<Batch>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn new(options: Arc<DecodeOptions>) -> io::Result<Self> {
        let (to, work) = channel::<Batch>();
        let (done, from) = channel();
        let thread = Builder::new().name("decode".to_owned()).spawn(move || {
            for mut batch in work {
                batch.decode(&options);
                if done.send(batch).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { to: Some(to), from: Mutex::new(from), thread: Some(thread) })
    }

    /// A worker ends early only if it panics; the panic continues in the caller.
    fn failed(&mut self) {
        self.to = None;
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.to = None;
        if let Some(thread) = self.thread.take() {
            // `failed` has already reported a panic
            let _ = thread.join();
        }
    }
}

/// Batches in progress, in order.
pub(crate) struct Workers {
    workers: Vec<Worker>,
    submitted: usize,
    returned: usize,
}

impl Workers {
    pub(crate) fn new(count: usize, options: &Arc<DecodeOptions>) -> io::Result<Self> {
        let workers = (0..count).map(|_| Worker::new(Arc::clone(options)));
        Ok(Self { workers: workers.collect::<Result<_, _>>()?, submitted: 0, returned: 0 })
    }

    /// Whether a batch is in progress.
    pub(crate) fn are_busy(&self) -> bool {
        self.returned != self.submitted
    }

    /// Hands a batch to the next worker.
    pub(crate) fn submit(&mut self, batch: Batch) {
        let turn = self.submitted % self.workers.len().max(1);
        let Some(worker) = self.workers.get_mut(turn) else { return };
        self.submitted += 1;
        if worker.to.as_ref().is_some_and(|to| to.send(batch).is_err()) {
            worker.failed();
        }
    }

    /// Waits for the oldest batch; `None` if none is in progress.
    pub(crate) fn next(&mut self) -> Option<Batch> {
        if !self.are_busy() {
            return None;
        }
        let turn = self.returned % self.workers.len().max(1);
        let worker = self.workers.get_mut(turn)?;
        self.returned += 1;
        let from = worker.from.get_mut().unwrap_or_else(PoisonError::into_inner);
        let batch = from.recv().ok();
        if batch.is_none() {
            worker.failed();
        }
        batch
    }
}
