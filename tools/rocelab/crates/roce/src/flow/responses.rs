// SPDX-License-Identifier: GPL-2.0-or-later
//! The responses of a direction: READ data, and the message sequence numbers in AETHs.

use std::collections::VecDeque;

use super::assembly::{belongs, complete};
use super::context::{Answer, Context};
use super::message::Message;
use super::psn;
use super::requests::{Acked, Read, Requests};
use super::stats::Stats;
use crate::finding::{At, Rule};
use crate::opcode::Opcode;

/// A READ response packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Response {
    pub(super) psn: u32,
    pub(super) op: &'static Opcode,
    pub(super) bytes: u32,
    pub(super) wire: u32,
    pub(super) more_frames: u16,
    pub(super) at: At,
}

/// Ranges of missing responses that are kept; the oldest are forgotten first.
const MAX_LOST: usize = 64;

/// The READ that is being answered. A reissued READ has responses to each issue.
#[derive(Clone, Debug)]
struct Progress {
    /// PSN of the READ, or of the first response if the READ was not captured.
    start: u32,
    /// The PSN after the last response; unknown without the READ.
    end: Option<u32>,
    /// Bytes that the READ requests.
    len: Option<u32>,
    /// The PSN of the next response that is missing.
    need: u32,
    broken: bool,
    message: Message,
}

/// The responses of one responder; what each ACK changes comes first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Responses {
    /// What came before this PSN was answered, so that it is known which responses are missing.
    answered: Option<u32>,
    msn: Option<u32>,
    /// The PSN of the ACK with this MSN.
    msn_psn: Option<u32>,
    /// An earlier MSN, and the last PSN that was acknowledged with it.
    outdated: Option<(u32, u32)>,
    msn_messages: u32,
    msn_inexact: bool,
    high: Option<u32>,
    /// The PSN after the last completed READ: responses before it are repeated.
    done: Option<u32>,
    progress: Option<Progress>,
    /// Responses that were not captured although later ones were: first PSN, and the one after the last.
    lost: VecDeque<(u32, u32)>,
}

impl Responses {
    /// Reads what an ACK needs.
    #[inline]
    pub(super) fn look(&self) -> u64 {
        u64::from(self.answered.is_some()) ^ u64::from(self.high.is_some())
    }

    /// What the capture has of the response with this PSN.
    pub(super) fn answer(&self, at: u32) -> Answer {
        if self.is_lost(at) {
            Answer::Missing
        } else if self.has(at) {
            Answer::Captured
        } else {
            Answer::None
        }
    }

    fn is_lost(&self, at: u32) -> bool {
        self.lost.iter().any(|&(from, to)| !psn::before(at, from) && psn::before(at, to))
    }

    /// Notes responses that were skipped.
    fn note_lost(&mut self, from: u32, to: u32) {
        if psn::before(from, to) && !self.is_lost(from) {
            if self.lost.len() >= MAX_LOST {
                self.lost.pop_front();
            }
            self.lost.push_back((from, to));
        }
    }

    /// A response was captured after all.
    fn note_found(&mut self, at: u32) {
        let within = |&(from, to): &(u32, u32)| !psn::before(at, from) && psn::before(at, to);
        let Some(index) = self.lost.iter().position(within) else { return };
        let Some((from, to)) = self.lost.remove(index) else { return };
        for (from, to) in [(psn::add(at, 1), to), (from, at)] {
            if from != to {
                self.lost.insert(index, (from, to));
            }
        }
    }

    /// The responder has executed what comes before PSN `to`: the responses to READs and atomics there
    /// were captured, or they are missing.
    #[inline]
    pub(super) fn pass_reads(&mut self, requests: &Requests, to: u32, stats: &mut Stats) {
        let from = self.answered.unwrap_or_else(|| requests.origin());
        if psn::before(from, to) {
            self.answered = Some(to);
            if !requests.has_reads() {
                return;
            }
            for (start, end) in requests.reads_between(from, to) {
                self.pass_read(start, end, stats);
            }
        }
    }

    fn pass_read(&mut self, start: u32, end: u32, stats: &mut Stats) {
        let progress = self.progress.as_ref().filter(|progress| progress.start == start);
        let from = match progress {
            Some(progress) => progress.need,
            None if self.done.is_some_and(|done| psn::before(start, done)) => return,
            None => start,
        };
        if psn::before(from, end) && !self.is_lost(from) {
            stats.gaps += 1;
            stats.missing += u64::from(psn::diff(end, from).unsigned_abs());
            self.note_lost(from, end);
        }
    }

    /// Takes the response to an atomic.
    pub(super) fn note_atomic(&mut self, at: u32) {
        self.note_found(at);
        if self.answered.is_none_or(|answered| !psn::before(at, answered)) {
            self.answered = Some(psn::add(at, 1));
        }
    }

    /// Whether the response with this PSN was captured before.
    pub(super) fn has(&self, at: u32) -> bool {
        if self.is_lost(at) {
            return false;
        }
        self.done.is_some_and(|done| psn::before(at, done))
            || self.answered.is_some_and(|answered| psn::before(at, answered))
            || self.progress.as_ref().is_some_and(|progress| {
                !psn::before(at, progress.start) && psn::before(at, progress.need)
            })
    }

    pub(super) fn packet(
        &mut self,
        response: &Response,
        read: Option<Read>,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        let passed = self.high.is_some_and(|high| psn::before(response.psn, high));
        // a response that was not captured before is no second one
        let found = self.is_lost(response.psn);
        if found {
            self.note_found(response.psn);
        }
        if passed {
            if !found {
                stats.count_passed(true);
                stats.count_again(response.at.time_ns, 1);
            }
        } else {
            self.high = Some(psn::add(response.psn, 1));
        }
        let behind = read.map_or(psn::add(response.psn, 1), |read| read.end);
        if passed && self.done.is_some_and(|done| !psn::before(done, behind)) {
            return;
        }
        let start = read.map(|read| read.psn);
        let known = self.progress.as_ref().is_some_and(|progress| match start {
            Some(start) => progress.start == start && progress.end.is_some(),
            None => !response.op.position.begins() && progress.end.is_none(),
        });
        if !known {
            if passed && read.is_none() {
                return;
            }
            self.abandon(stats);
            let late = start.is_some_and(|start| start != response.psn);
            let begins = response.op.position.begins();
            self.progress = Some(Progress {
                start: start.unwrap_or(response.psn),
                end: read.map(|read| read.end),
                len: read.and_then(|read| read.reth).map(|reth| reth.len),
                need: start.unwrap_or(response.psn),
                broken: read.is_none() && !begins,
                message: Message {
                    connection: context.connection,
                    from_a: context.from_a,
                    opcode: response.op.code,
                    net: context.net,
                    psn: response.psn,
                    packets: 0,
                    frames: 0,
                    bytes: 0,
                    wire_bytes: 0,
                    first: response.at,
                    last: response.at,
                },
            });
            if late && !passed {
                stats.gaps += 1;
                let from = start.unwrap_or(response.psn);
                stats.missing += u64::from(psn::diff(response.psn, from).unsigned_abs());
                self.note_lost(from, response.psn);
            }
        }
        self.advance(response, passed, stats, context);
    }

    fn advance(
        &mut self,
        response: &Response,
        passed: bool,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        let Some(progress) = &mut self.progress else { return };
        let ahead = psn::diff(response.psn, progress.need);
        if ahead != 0 {
            // the requester discards responses after a gap and reissues the READ
            if ahead > 0 && !passed && progress.message.packets > 0 && !progress.broken {
                stats.gaps += 1;
                stats.missing += u64::from(ahead.unsigned_abs());
                progress.broken = true;
                let need = progress.need;
                self.note_lost(need, response.psn);
            }
            return;
        }
        progress.broken &= progress.end.is_none();
        // a READ whose span was guessed ends before the responses to the next one
        let guessed = stats.pmtu == 0 || stats.pmtu_guessed;
        progress.broken |= guessed && progress.message.packets > 0 && response.op.position.begins();
        let message = &mut progress.message;
        message.packets += 1;
        message.frames += 1 + u32::from(response.more_frames);
        message.bytes += u64::from(response.bytes);
        message.wire_bytes += u64::from(response.wire);
        message.last = response.at;
        message.opcode = response.op.code;
        belongs(response.at, message, context);
        progress.need = psn::add(response.psn, 1);
        let ends = match progress.end {
            Some(end) => progress.need == end,
            None => response.op.position.ends(),
        };
        if !ends {
            return;
        }
        let Some(done) = self.progress.take() else { return };
        self.done = Some(done.need);
        if done.broken {
            stats.incomplete += 1;
            return;
        }
        let message = done.message;
        if let Some(len) = done.len.filter(|&len| u64::from(len) != message.bytes) {
            context.find(Rule::MessageLength, response.at, false, || {
                format!(
                    "the READ at PSN {} asks for {len} bytes; its responses carry {}",
                    done.start, message.bytes
                )
            });
        }
        complete(message, stats, context);
    }

    fn abandon(&mut self, stats: &mut Stats) {
        if let Some(progress) = self.progress.take() {
            stats.incomplete += 1;
            if let Some(end) = progress.end {
                self.note_lost(progress.need, end);
            }
        }
    }

    /// Counts newly acknowledged messages towards the next MSN.
    pub(super) fn note_acked(&mut self, acked: Acked) {
        self.msn_messages += acked.messages;
        self.msn_inexact |= acked.advanced && !acked.exact;
    }

    /// Compares the MSN of an ACK with the messages acknowledged since the previous one.
    pub(super) fn check_msn(&mut self, at_psn: u32, msn: u32, at: At, context: &mut Context<'_>) {
        let messages = std::mem::take(&mut self.msn_messages);
        let inexact = std::mem::take(&mut self.msn_inexact);
        let acked = self.msn_psn.replace(at_psn);
        let Some(before) = self.msn.replace(msn) else { return };
        if before != msn {
            self.outdated = acked.map(|acked| (before, acked));
        }
        let expected = psn::add(before, messages);
        if !inexact && expected != msn {
            context.find(Rule::Msn, at, false, || {
                format!(
                    "MSN {msn}; expected {expected} after MSN {before} and {messages} more message(s)"
                )
            });
        }
    }

    /// Whether the responder had acknowledged a PSN before it sent a response with this MSN.
    pub(super) fn acked_before(&self, at: u32, msn: u32) -> bool {
        self.outdated.is_some_and(|(old, acked)| psn::before(old, msn) && !psn::before(acked, at))
    }

    /// Whether an MSN is less than that of an earlier ACK.
    pub(super) fn restarts(&self, msn: u32) -> bool {
        self.msn.is_some_and(|before| psn::before(msn, before))
    }

    /// Forgets the MSNs so far: they predict nothing about the next ones.
    pub(super) fn forget_msn(&mut self) {
        (self.msn, self.msn_psn, self.outdated) = (None, None, None);
    }

    pub(super) fn finish(&mut self, stats: &mut Stats) {
        self.abandon(stats);
    }
}
