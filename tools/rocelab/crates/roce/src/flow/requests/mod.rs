// SPDX-License-Identifier: GPL-2.0-or-later
//! The request half of a direction: one sender's PSNs, what it retransmits, and why.
//!
//! The tracker follows the capture like a Go-Back-N receiver (IBA volume 1, chapter 9): `next` is the first
//! PSN that the sender has not used, `cursor` the first one that the capture lacks. Packets between
//! the two wait in `ahead`. When the sender returns to an earlier PSN, a *run* begins. The end of the
//! run distinguishes a go-back from a duplicate or a reordered packet.

mod acknowledgement;
mod delay;
mod gaps;
mod reads;
mod retransmission;
mod stuck;

use std::collections::VecDeque;

pub(super) use acknowledgement::Acked;
use acknowledgement::{Nak, Rnr};
use gaps::{Hole, MAX_HOLES};
pub(super) use reads::Read;
use reads::{PATH_MTUS, UNKNOWN_LEN};
use retransmission::{Discarded, Disordered, End, Retransmission, Skipped};
use stuck::{NO_MESSAGE, Sizes, Stuck};

use super::assembly::{Assembly, Piece};
use super::context::Context;
use super::costs::Trouble;
use super::psn;
use super::stats::Stats;
use super::verdict::{PsnStatus, Verdict};
use crate::finding::{At, Repeated, Rule};
use crate::opcode::{Class, Opcode};
use crate::packet::Reth;

/// A larger PSN jump is not a loss: another connection uses the QP number.
const RESTART: i32 = 1 << 16;
const MAX_OUTSTANDING: usize = 4096;
const MAX_CORRUPT: usize = 16;
/// Reordered packets that show several paths: a NAK then does not show where a packet was lost.
const DISORDERLY: u64 = 3;

/// A request packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) psn: u32,
    pub(super) op: &'static Opcode,
    pub(super) bytes: u32,
    pub(super) wire: u32,
    pub(super) more_frames: u16,
    pub(super) reth: Option<Reth>,
    pub(super) icrc: u32,
    pub(super) at: At,
    pub(super) reliable: bool,
    /// When its sender sent anything before, ns since 1970.
    pub(super) since_ns: i64,
    /// It asks for an answer.
    pub(super) asks: bool,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// The PSN whose response answers it.
    key: u32,
    /// Of its message, or [`NO_MESSAGE`].
    bytes: u32,
    at: At,
}

/// One sender's requests. What nearly all packets need comes first: of thousands of directions, most are in
/// no cache.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Requests {
    started: bool,
    /// Whether nothing is pending between messages, so that only the next PSN matters.
    idle: bool,
    /// Whether nothing is pending that an ACK could settle except messages, see [`Self::is_quiet`].
    quiet: bool,
    /// Whether an ACK has advanced `acked` beyond `origin`.
    confirmed: bool,
    /// Whether the capture has the connection from its first message on.
    from_start: bool,
    /// The responder had completed messages before the capture.
    midway: bool,
    /// The path MTU from which the spans of READs were computed; 0: unknown.
    mtu: u32,
    next: u32,
    cursor: u32,
    acked: u32,
    /// The PSN after all of [`Self::reads`]; valid if there are any.
    reads_end: u32,
    /// Messages acknowledged; `None` once one may be missing.
    acked_in_order: Option<u32>,
    outstanding: VecDeque<Outstanding>,
    reads: VecDeque<Read>,
    last: Option<(u32, u32, i64)>,
    /// The last message that was answered: the PSN of its last packet, and when it was sent, ns since 1970.
    answered: (u32, i64),
    /// The last PSN that asked for an answer.
    asked: Option<u32>,
    sizes: Sizes,
    assembly: Assembly,
    /// RC or XRC: the sender retransmits what is lost.
    reliable: bool,
    /// The READ before `next` whose number of responses is still unknown: its PSN and length.
    open_read: Option<(u32, u32)>,
    ahead: VecDeque<Piece>,
    holes: VecDeque<Hole>,
    retransmission: Option<Retransmission>,
    nak: Option<Nak>,
    /// The previous NAK, if `nak` came before retransmission started.
    older_nak: Option<Nak>,
    rnr: Option<Rnr>,
    /// Up to this time, delays are charged, ns since 1970.
    charged_ns: i64,
    /// When a response came last that acknowledged nothing new, ns since 1970.
    repeated_ns: i64,
    /// Messages before this PSN are counted as delayed.
    delayed_to: Option<u32>,
    disordered: Option<Disordered>,
    discarded: Option<Discarded>,
    /// What was sent again last: first PSN, and the one after the last.
    again: Option<(u32, u32)>,
    reordered: Repeated,
    /// Reordered packets with PSNs before the first captured one: the sender may also have gone back.
    reordered_early: Repeated,
    doubled: Repeated,
    /// Whether some of the duplicates may be something else.
    doubled_open: bool,
    /// Requests of unknown length, see [`Self::open_read`].
    unknown_reads: u64,
    /// Retransmitted PSNs that the capture lacks.
    skipped: VecDeque<Skipped>,
    /// PSNs that were captured only when retransmitted, and when, ns since 1970.
    filled: VecDeque<(u32, u32, i64)>,
    /// No latencies up to this PSN: a response may answer either copy (Karn's rule).
    karn: Option<u32>,
    /// An ACK for a PSN that was not captured.
    unsent: Option<(u32, At)>,
    /// The last PSN that was acknowledged before the capture had it.
    early: Option<u32>,
    /// Packets that were captured corrupted: their PSNs, the latest last.
    corrupt: VecDeque<Corrupt>,
    stuck: Option<Stuck>,
    /// The PSN of a NAK that refuses a request for good.
    refused: Option<u32>,
    /// Up to this PSN the capture may lack messages, so the MSNs of their ACKs are not checked.
    inexact_to: Option<u32>,
    /// The first PSN that was captured; the sender may have begun earlier.
    origin: u32,
    /// Whether a response to a request from before the capture was seen.
    older: bool,
}

/// A packet that was captured corrupted.
#[derive(Clone, Copy, Debug)]
struct Corrupt {
    psn: u32,
    at: At,
    /// A right copy was captured later.
    repaired: bool,
}

impl Requests {
    pub(super) fn started(&self) -> bool {
        self.started
    }

    /// Reads what [`Self::advance`] and an ACK need.
    #[inline]
    pub(super) fn look(&self) -> u64 {
        let reads = self.reads.len() as u64;
        let (answered, asked) = (self.answered.1 as u64, self.asked.map_or(0, u64::from));
        u64::from(self.idle) ^ reads ^ answered ^ asked ^ u64::from(self.assembly.is_between())
    }

    /// Reads the messages that wait for an answer.
    #[inline]
    pub(super) fn look_behind(&self) -> u64 {
        let ends = [self.outstanding.front(), self.outstanding.back()];
        ends.into_iter().flatten().fold(0, |sum, one| sum ^ u64::from(one.key))
    }

    /// Whether a response to recent requests may have this PSN.
    pub(super) fn expects(&self, psn: u32) -> bool {
        self.started
            && psn::diff(psn, psn::add(self.next, self.slack())) < 0
            && psn::diff(psn, self.acked) >= -1
    }

    /// The PSNs that [`Self::expects`], first and last.
    pub(super) fn answerable(&self) -> Option<(u32, u32)> {
        let from = psn::add(self.acked, psn::MASK);
        self.started.then(|| (from, psn::add(self.next, self.slack())))
    }

    /// The number of PSNs after `next` that a READ may span while the path MTU is unknown; at least 1.
    fn slack(&self) -> u32 {
        match self.open_read {
            None => 1,
            Some((_, UNKNOWN_LEN)) => 1 << 12,
            Some((_, len)) => (len / 256).clamp(1, 1 << 22),
        }
    }

    /// Whether no request with this PSN was captured.
    pub(super) fn unknown(&self, at: u32) -> bool {
        !psn::before(at, self.next)
    }

    /// The first PSN that was captured.
    pub(super) fn origin(&self) -> u32 {
        self.origin
    }

    /// Another connection must have taken over the QP number.
    pub(super) fn restarts(&self, at: u32, op: &Opcode) -> bool {
        self.started && op.position.begins() && psn::diff(at, self.next).abs() > RESTART
    }

    /// Whether a right copy of the last corrupted packet is expected next, or soon.
    fn awaits_damaged(&self) -> bool {
        let soon = |damaged: &Corrupt| {
            (0..MAX_OUTSTANDING as i32).contains(&psn::diff(damaged.psn, self.next))
        };
        self.corrupt.back().is_some_and(soon)
    }

    /// The last corrupted packet with this PSN.
    fn corrupted(&self, at_psn: u32) -> Option<At> {
        self.corrupt.iter().rev().find(|one| one.psn == at_psn).map(|one| one.at)
    }

    /// Whether the last copy of a packet did not arrive: it was corrupted, or left out when others were sent again.
    fn lacks_last_copy(&self, at_psn: u32) -> Option<Trouble> {
        if self.corrupt.iter().any(|one| one.psn == at_psn && !one.repaired) {
            return Some(Trouble::Corrupted);
        }
        let skipped = self.skipped.iter().any(|one| one.contains(at_psn));
        skipped.then_some(Trouble::LossNear)
    }

    /// Notes a corrupted packet, which the receiver discards.
    pub(super) fn note_corrupt(&mut self, at_psn: u32, at: At) {
        if self.corrupt.len() >= MAX_CORRUPT {
            self.corrupt.pop_front();
        }
        self.corrupt.push_back(Corrupt { psn: at_psn, at, repaired: false });
        self.idle = false;
        self.note_inexact();
    }

    pub(super) fn packet(
        &mut self,
        request: &Request,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        self.idle = false;
        self.quiet = false;
        if !self.started {
            self.started = true;
            self.reliable = request.reliable;
            self.next = request.psn;
            self.cursor = request.psn;
            self.acked = request.psn;
            self.origin = request.psn;
            self.answered = (psn::add(request.psn, psn::MASK), request.at.time_ns);
            // the first ACK may also be for messages from before the capture
            self.inexact_to = Some(psn::add(request.psn, 1));
            // in the midst of a message the counts would agree without its beginning
            self.acked_in_order = request.op.position.begins().then_some(0);
        }
        self.note_mtu(stats.pmtu);
        let mut ahead = psn::diff(request.psn, self.next);
        if ahead > 0 && self.close_open_read(request.psn, stats) {
            ahead = 0;
        }
        let span = self.span(request, stats.pmtu);
        if request.op.needs_answer() {
            let certain = if stats.pmtu_guessed { 0 } else { stats.pmtu };
            self.note_read(request, span, certain, context);
            self.note_depth(request, stats);
        }
        if ahead >= 0 {
            self.new_packet(request, span, ahead as u32, stats, context);
        } else {
            self.resent_packet(request, span, stats, context);
        }
        let icrc_and_time = (request.psn, request.icrc, request.at.time_ns);
        self.last = Some(icrc_and_time);
        if request.asks {
            self.note_asked(request.psn);
        }
        self.note_window(stats);
    }

    /// Whether the next PSN was acknowledged already: the sender sends it again.
    fn acked_early(&self) -> bool {
        self.early.is_some_and(|early| !psn::before(early, self.next))
    }

    /// The PSN that the sender has not used yet.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Whether nothing is pending between messages, so that only the next PSN matters.
    #[inline]
    pub(super) fn is_idle(&mut self, pmtu: u32) -> bool {
        pmtu == self.mtu && (self.idle || self.becomes_idle())
    }

    fn becomes_idle(&mut self) -> bool {
        self.idle = self.started
            && self.next == self.cursor
            && self.retransmission.is_none()
            && self.unsent.is_none()
            && self.discarded.is_none()
            && self.open_read.is_none()
            && !self.awaits_damaged()
            && self.ahead.is_empty()
            && self.holes.is_empty()
            && self.assembly.is_between();
        self.idle
    }

    /// Whether nothing is pending that an ACK could settle except messages.
    #[inline]
    fn is_quiet(&mut self) -> bool {
        self.quiet || self.becomes_quiet()
    }

    fn becomes_quiet(&mut self) -> bool {
        self.quiet = self.started
            && self.holes.is_empty()
            && self.early.is_none()
            && self.karn.is_none()
            && self.inexact_to.is_none()
            && self.disordered.is_none()
            && self.discarded.is_none()
            && self.rnr.is_none();
        self.quiet
    }

    /// Takes the next `count` (not 0) packets, all whole messages, while [`Self::is_idle`]. `at` gives
    /// the place of each; each has `bytes`, and the last one this ICRC.
    #[inline]
    pub(super) fn advance(
        &mut self,
        count: usize,
        at: impl Fn(usize) -> At,
        (bytes, icrc): (u32, u32),
        reliable: bool,
    ) {
        let first = self.next;
        self.sizes.note(bytes, first);
        let key = |index: usize| psn::add(first, index as u32);
        if reliable {
            let excess = (self.outstanding.len() + count).saturating_sub(MAX_OUTSTANDING);
            if excess > 0 {
                self.outstanding.drain(..excess.min(self.outstanding.len()));
                self.note_inexact();
            }
            let kept = count.saturating_sub(MAX_OUTSTANDING)..count;
            let kept = kept.map(|index| Outstanding { key: key(index), bytes, at: at(index) });
            self.outstanding.extend(kept);
        }
        self.last = Some((key(count - 1), icrc, at(count - 1).time_ns));
        self.next = key(count);
        self.cursor = self.next;
        self.assembly.pass(self.next);
    }

    #[inline]
    pub(super) fn note_window(&self, stats: &mut Stats) {
        let window = psn::diff(self.next, self.acked).max(0) as u32;
        stats.max_outstanding = stats.max_outstanding.max(window);
        let messages = self.outstanding.len() as u32;
        stats.pace.most_messages = stats.pace.most_messages.max(messages);
    }

    /// Notes that a packet asks for an answer.
    #[inline]
    pub(super) fn note_asked(&mut self, at_psn: u32) {
        self.asked = Some(at_psn);
    }

    /// Whether nothing waits for a response.
    #[inline]
    pub(super) fn is_answered(&self) -> bool {
        self.next == self.acked
    }

    /// Takes a new request after the sender's last packet: nothing may have been outstanding.
    #[inline]
    pub(super) fn note_idle(
        &mut self,
        since_ns: i64,
        at: At,
        stats: &mut Stats,
        context: &Context<'_>,
    ) {
        if !self.is_answered() {
            return;
        }
        if let Some(ns) = stats.pace.note_idle(since_ns, at.time_ns) {
            context.idle(ns, at, stats);
        }
    }

    /// Notes that the capture may lack messages up to `next`.
    fn note_inexact(&mut self) {
        self.inexact_to = Some(self.next);
        self.acked_in_order = None;
        self.quiet = false;
    }

    /// Notes that the next ACK covers less than its MSN: a NAK acknowledged what came before it.
    fn note_passed(&mut self) {
        self.note_inexact();
        self.inexact_to = Some(psn::add(self.next, 1));
    }

    /// Compares the MSN of an ACK with the messages of the capture: a connection counts from 0, so
    /// equal numbers show that the capture has all of them, unless it has responses to others, too: a count
    /// that wrapped passes 0 later.
    pub(super) fn note_msn(&mut self, msn: u32) {
        self.from_start |= self.acked_in_order == Some(msn) && !self.older;
        self.midway |= self.acked_in_order.is_some() && !self.from_start;
    }

    /// Takes the PSN of a response: one before the first request of the capture shows that the connection
    /// is older, whatever its MSNs count.
    fn note_answered(&mut self, at_psn: u32) {
        if psn::before(at_psn, self.origin) {
            self.older = true;
            self.from_start = false;
        }
    }

    #[inline]
    fn note_outstanding(&mut self, key: u32, bytes: u32, at: At) {
        if self.outstanding.len() >= MAX_OUTSTANDING {
            self.outstanding.pop_front();
            self.note_inexact();
        }
        self.outstanding.push_back(Outstanding { key, bytes, at });
    }

    fn new_packet(
        &mut self,
        request: &Request,
        span: u32,
        jumped: u32,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        let end = if jumped > 0 { End::Gap } else { End::New };
        if !self.charge_damaged(request, stats) {
            self.note_idle(request.since_ns, request.at, stats, context);
        }
        self.end_retransmission(end, stats, context);
        let status = if jumped > 0 { PsnStatus::Gap } else { PsnStatus::New };
        context.verdicts.add(|| Verdict::Status { packet: request.at.packet, status });
        if let Some((acked, at)) = self.unsent.take() {
            if at.file != request.at.file && !psn::before(acked, request.psn) {
                // the clocks of two files disagree; the responder is not at fault
                if psn::before(acked, psn::add(request.psn, span)) {
                    context.evidence.note_early(at, request.at);
                } else {
                    self.unsent = Some((acked, at));
                }
            } else if jumped == 0 && !psn::before(acked, request.psn) {
                // a capture that starts in mid-traffic does not have what was sent before
                let ambiguous = !self.from_start;
                context.find(Rule::AckUnsent, at, ambiguous, || {
                    format!(
                        "acknowledges PSN {acked}, which is first sent in packet {}",
                        request.at.packet
                    )
                });
            }
        }
        if jumped > 0 {
            stats.gaps += 1;
            stats.missing += u64::from(jumped);
            if self.holes.len() >= MAX_HOLES {
                self.give_up_hole(context);
            }
            let (from, to, at) = (self.next, request.psn, request.at);
            let hole =
                Hole { from, to, at, told: false, sure: self.confirmed && !self.acked_early() };
            self.holes.push_back(hole);
        }
        self.next = psn::add(request.psn, span);
        self.sizes.note(request.bytes, request.psn);
        if jumped > 0 {
            self.note_inexact();
        }
        self.open_read = match (request.op.class, request.reth) {
            (Class::ReadRequest, Some(reth)) if stats.pmtu == 0 && reth.len > PATH_MTUS[0] => {
                Some((request.psn, reth.len))
            }
            (Class::ReadRequest, None) => {
                self.unknown_reads += 1;
                Some((request.psn, UNKNOWN_LEN))
            }
            _ => None,
        };
        if request.reliable && request.op.position.ends() {
            let whole = request.op.is_data() && request.psn == self.cursor;
            let bytes =
                whole.then(|| self.assembly.bytes_with(request.op, request.bytes)).flatten();
            self.note_outstanding(request.psn, bytes.unwrap_or(NO_MESSAGE), request.at);
        }
        self.feed(request, span, stats, context);
    }

    /// No more packets will come.
    pub(super) fn finish(&mut self, stats: &mut Stats, context: &mut Context<'_>) {
        self.end_retransmission(End::Capture, stats, context);
        self.finish_stuck(stats, context);
        if let Some((acked, at)) = self.unsent.take() {
            context.find(Rule::AckUnsent, at, true, || {
                format!("acknowledges PSN {acked}, which the capture does not show being sent")
            });
        }
        while !self.ahead.is_empty() {
            self.skip_hole(stats, context);
        }
        while !self.holes.is_empty() {
            self.give_up_hole(context);
        }
        if let Some(discarded) = self.discarded.take() {
            self.tell_selective_repeat(&discarded, true, context);
        }
        let lost = stats.missing > stats.missed;
        let early = std::mem::take(&mut self.reordered_early);
        let likely = early.count == 0 || self.reordered.count >= DISORDERLY;
        self.reordered.note(early.first, early.count);
        let soon = stats.reorder_ns < stats.least_latency_ns() && likely;
        let sure = soon || !self.reliable;
        context.find_repeated(Rule::Reorder, self.reordered, !sure, || {
            format!(
                "{} packet(s) are late, by up to {} PSNs and {} ns, and the sender did not go back: \
                 reordered{}; {}",
                self.reordered.count,
                stats.reorder_depth,
                stats.reorder_ns,
                if sure { "" } else { ", or retransmitted alone" },
                if lost { "others were lost" } else { "nothing was lost" },
            )
        });
        context.find_repeated(Rule::Duplicate, self.doubled, self.doubled_open, || {
            let count = self.doubled.count;
            format!("{count} packet(s) appear twice, and the sender did not go back")
        });
        if self.started {
            let evidence = &mut *context.evidence;
            let requests = stats.packets.saturating_sub(stats.acks);
            evidence.requests += requests;
            evidence.note_copies(context.segment, requests, 0);
            evidence.gaps += stats.gaps;
            evidence.missing += stats.missing;
            evidence.unknown_reads += self.unknown_reads;
            evidence.midway += u64::from(self.midway);
        }
    }
}
