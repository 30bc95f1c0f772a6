// SPDX-License-Identifier: GPL-2.0-or-later
//! Threads that decode blocks while the caller reads the next ones and follows the last ones.
//!
//! Blocks go to the workers in turn and come back from them in turn, so they stay in order.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::lane::{Lane, Rules};

struct Worker {
    to: Option<Sender<Lane>>,
    /// Never locked: a Python object has to be shareable, though nothing shares it.
    from: Mutex<Receiver<Lane>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn new(rules: Arc<Rules>) -> io::Result<Self> {
        let (to, work) = channel::<Lane>();
        let (done, from) = channel();
        let thread = Builder::new().name("decode".to_owned()).spawn(move || {
            for mut lane in work {
                lane.decode(&rules);
                if done.send(lane).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { to: Some(to), from: Mutex::new(from), thread: Some(thread) })
    }

    /// A worker ends early only by a panic, which goes on in the caller.
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
            // its panic was told when its block was missed
            let _ = thread.join();
        }
    }
}

/// Blocks being decoded, in order.
pub(crate) struct Workers {
    workers: Vec<Worker>,
    given: usize,
    taken: usize,
}

impl Workers {
    pub(crate) fn new(count: usize, rules: &Arc<Rules>) -> io::Result<Self> {
        let workers = (0..count).map(|_| Worker::new(Arc::clone(rules)));
        Ok(Self { workers: workers.collect::<Result<_, _>>()?, given: 0, taken: 0 })
    }

    /// Have a block decoded.
    pub(crate) fn give(&mut self, lane: Lane) {
        let turn = self.given % self.workers.len().max(1);
        let Some(worker) = self.workers.get_mut(turn) else { return };
        self.given += 1;
        if worker.to.as_ref().is_some_and(|to| to.send(lane).is_err()) {
            worker.failed();
        }
    }

    /// The oldest block that was given, decoded; `None` if there is none.
    pub(crate) fn take(&mut self) -> Option<Lane> {
        if self.taken == self.given {
            return None;
        }
        let turn = self.taken % self.workers.len().max(1);
        let worker = self.workers.get_mut(turn)?;
        self.taken += 1;
        let from = worker.from.get_mut().unwrap_or_else(PoisonError::into_inner);
        let lane = from.recv().ok();
        if lane.is_none() {
            worker.failed();
        }
        lane
    }
}
