// SPDX-License-Identifier: GPL-2.0-or-later
//! A thread that reads and decodes ahead, while the caller follows: files only, since a signal to the caller
//! does not end the thread's wait for a pipe.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::batch::Batch;
use crate::decoded::{Decoded, Next};

/// Between two looks at signals, where a file is slow.
const WAIT: Duration = Duration::from_millis(50);
/// Batches that the caller has or that await it. While there are fewer, it would wait: the next one is left
/// to it undecoded.
const MIN_AHEAD: usize = 2;

/// What the thread returns: what it read from, and batches that came back too late for it.
type Rest = Option<(Decoded, Receiver<Batch>)>;

pub(crate) struct ReadAhead {
    /// Never locked: a Python object must be `Sync`, although nothing shares it.
    from: Mutex<Receiver<Next>>,
    back: Sender<Batch>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Rest>,
}

impl ReadAhead {
    /// Lets a thread read `decoded`, which is returned if there can be no more threads.
    pub(crate) fn new(decoded: Decoded) -> (Option<Decoded>, Option<Self>) {
        let (to, from) = channel();
        let (back, returned) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        // a thread that cannot be started would take it along
        let (give, take) = channel::<Decoded>();
        let thread = Builder::new().name("read".to_owned()).spawn(move || {
            let decoded = take.recv().ok()?;
            Some(read(decoded, &to, returned, &stops))
        });
        let Ok(thread) = thread else { return (Some(decoded), None) };
        match give.send(decoded) {
            Ok(()) => (None, Some(Self { from: Mutex::new(from), back, stop, thread })),
            Err(unsent) => (Some(unsent.0), None),
        }
    }

    /// Ends the captures here: what was read still comes.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The next batch, which comes back by [`Self::give_back`].
    pub(crate) fn next(&mut self) -> Next {
        let from = self.from.get_mut().unwrap_or_else(PoisonError::into_inner);
        match from.recv_timeout(WAIT) {
            Ok(Next::Undecoded(mut batch, options)) => {
                batch.decode(&options);
                Next::Batch(batch)
            }
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// Gives back a batch for the thread to fill; returns it if the thread has ended.
    pub(crate) fn give_back(&mut self, batch: Batch) -> Option<Batch> {
        self.back.send(batch).err().map(|unsent| unsent.0)
    }

    /// What the thread read from, with all batches that it was given; after the end.
    pub(crate) fn end(self) -> Option<Decoded> {
        let rest = match self.thread.join() {
            Ok(rest) => rest,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        rest.map(|(mut decoded, returned)| {
            decoded.idle.extend(returned.try_iter());
            decoded
        })
    }
}

fn read(
    mut decoded: Decoded,
    to: &Sender<Next>,
    returned: Receiver<Batch>,
    stop: &AtomicBool,
) -> (Decoded, Receiver<Batch>) {
    let batches = decoded.idle.len();
    loop {
        if stop.load(Ordering::Relaxed) {
            decoded.merge.stop();
        }
        decoded.idle.extend(returned.try_iter());
        if !decoded.goes_on() {
            // the caller has all batches
            match returned.recv() {
                Ok(batch) => decoded.idle.push(batch),
                Err(_) => break,
            }
        }
        let ahead = batches - decoded.idle.len();
        match decoded.next(ahead < MIN_AHEAD) {
            Next::Nothing => {}
            Next::End => break,
            next => {
                if to.send(next).is_err() {
                    break;
                }
            }
        }
    }
    (decoded, returned)
}
