// SPDX-License-Identifier: GPL-2.0-or-later
//! The request half of a direction: one sender's PSNs, what it sends again, and why.
//!
//! The capture is taken as a Go-Back-N receiver would (IBA volume 1, chapter 9): `next` is the PSN
//! that the sender has not used yet, `cursor` the first one that the capture lacks. Packets between
//! the two wait in `ahead`. When the sender returns to a PSN that it had passed, a *run* begins; how
//! the run ends tells a go-back from a duplicate or a reordered packet.

use std::collections::VecDeque;

use super::context::Context;
use super::message::{Assembly, Piece};
use super::psn;
use super::stats::Stats;
use super::verdict::{PsnStatus, Verdict};
use crate::finding::{At, Rule};
use crate::opcode::{Class, Opcode};
use crate::packet::Reth;

/// A PSN jump beyond this is no loss: another connection uses the QP number.
const RESTART: i32 = 1 << 16;
/// Packets held back behind a gap; then the gap is given up.
const MAX_AHEAD: usize = 512;
const MAX_HOLES: usize = 64;
const MAX_OUTSTANDING: usize = 4096;
const MAX_READS: usize = 256;
/// A copy of the very last packet within this time is a duplicate: no timeout is as short
/// (IBA volume 1, 9.7.6.1.3: 4.096 µs doubled at least once, and up to four times that; in practice ms).
const DUPLICATE_NS: i64 = 50_000;
const PATH_MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];

/// A request packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) psn: u32,
    pub(super) op: &'static Opcode,
    pub(super) bytes: u32,
    pub(super) wire: u32,
    pub(super) reth: Option<Reth>,
    pub(super) icrc: u32,
    pub(super) at: At,
    pub(super) reliable: bool,
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    from: u32,
    to: u32,
    at: At,
    told: bool,
}

/// PSNs of a READ and what it asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) psn: u32,
    pub(super) end: u32,
    pub(super) reth: Reth,
    pub(super) at: At,
    /// The first PSN from which it was issued again.
    again: Option<u32>,
    /// A replay that nothing asked for was told.
    told: bool,
}

impl Read {
    /// The response with this PSN was asked for more than once.
    pub(super) fn asked_again(&self, at: u32) -> bool {
        self.again.is_some_and(|again| !psn::before(at, again))
    }
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// The PSN whose response answers it.
    key: u32,
    at: At,
}

#[derive(Clone, Copy, Debug)]
struct Nak {
    psn: u32,
    at: At,
    answered: bool,
}

#[derive(Clone, Copy, Debug)]
struct Rnr {
    psn: u32,
    at: At,
    delay_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Nak,
    Rnr,
    ResponseGap,
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    pos: u32,
    packets: u64,
    fills: bool,
    /// Every packet was acknowledged before it was sent again.
    acked: bool,
    /// The bytes of the packet right before it, and at once.
    copy: bool,
    cause: Cause,
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A PSN never used before follows.
    New,
    /// The sender goes back again.
    Again,
    /// The capture ends, or the connection does.
    Capture,
}

/// What an acknowledgement did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    pub(super) messages: u32,
    pub(super) regress: bool,
    /// It acknowledged something new.
    pub(super) advanced: bool,
    /// All it covers was captured, each message's end known: MSN can be checked.
    pub(super) exact: bool,
    /// It is for a PSN that was not sent yet.
    pub(super) early: bool,
    /// The last packet of the newest message that it answers, if only one copy of it was sent.
    pub(super) answers: Option<At>,
}

/// One sender's requests.
#[derive(Debug, Default)]
pub(super) struct Requests {
    started: bool,
    /// RC or XRC: what is lost will be sent again.
    reliable: bool,
    /// The path MTU that spans of READs were computed with; 0: not known.
    mtu: u32,
    next: u32,
    cursor: u32,
    acked: u32,
    /// `next` behind a READ whose number of responses is not known yet: its PSN and length.
    elastic: Option<(u32, u32)>,
    ahead: VecDeque<Piece>,
    holes: VecDeque<Hole>,
    outstanding: VecDeque<Outstanding>,
    reads: VecDeque<Read>,
    assembly: Assembly,
    run: Option<Run>,
    nak: Option<Nak>,
    /// The NAK before it, if sending had not started again when the next one came.
    older_nak: Option<Nak>,
    rnr: Option<Rnr>,
    /// A Go-Back-N receiver discards these after packets came in disorder: a NAK is no sign of loss.
    disordered: Option<(u32, u32)>,
    /// PSNs that the capture lacks of those sent again.
    skipped: Option<(u32, u32)>,
    /// Latencies up to here are not told: a response may answer either copy (Karn's rule).
    karn: Option<u32>,
    /// An ACK for a PSN that the capture has not seen.
    unsent: Option<(u32, At)>,
    corrupt: Option<(u32, At)>,
    last: Option<(u32, u32, i64)>,
    /// Something is missing since the last exact acknowledgement.
    inexact: bool,
    /// Nothing is pending between messages: only the next PSN is of interest.
    calm: bool,
}

impl Requests {
    pub(super) fn started(&self) -> bool {
        self.started
    }

    /// The PSN lies where a response to recent requests may.
    pub(super) fn expects(&self, psn: u32) -> bool {
        let slack = self.elastic.map_or(0, |(_, len)| (len / 256) as i32);
        self.started && psn::diff(psn, self.next) < slack.max(1) && psn::diff(psn, self.acked) >= -1
    }

    /// No request with this PSN was captured.
    pub(super) fn unknown(&self, at: u32) -> bool {
        !psn::before(at, self.next)
    }

    /// Another connection must have taken over the QP number.
    pub(super) fn restarts(&self, at: u32, op: &Opcode) -> bool {
        self.started && op.position.begins() && psn::diff(at, self.next).abs() > RESTART
    }

    /// The READ to whose responses a PSN belongs.
    pub(super) fn read_at(&self, at: u32) -> Option<Read> {
        let within = |read: &&Read| !psn::before(at, read.psn) && psn::before(at, read.end);
        self.reads.iter().rev().find(within).copied()
    }

    fn read_mut(&mut self, at: u32) -> Option<&mut Read> {
        let within = |read: &&mut Read| !psn::before(at, read.psn) && psn::before(at, read.end);
        self.reads.iter_mut().rev().find(within)
    }

    /// The response with this PSN came before, though nothing asked for it again; told once a READ.
    pub(super) fn tells_replay(&mut self, at: u32) -> bool {
        self.read_mut(at)
            .is_some_and(|read| !read.asked_again(at) && !std::mem::replace(&mut read.told, true))
    }

    /// A packet came with its bytes changed; the receiver will not have taken it.
    pub(super) fn note_corrupt(&mut self, at_psn: u32, at: At) {
        self.corrupt = Some((at_psn, at));
        self.inexact = true;
    }

    pub(super) fn packet(
        &mut self,
        request: &Request,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        self.calm = false;
        if !self.started {
            self.started = true;
            self.reliable = request.reliable;
            self.next = request.psn;
            self.cursor = request.psn;
            self.acked = request.psn;
            self.inexact = true;
        }
        if stats.pmtu != self.mtu {
            self.learn_mtu(stats.pmtu);
        }
        let mut ahead = psn::diff(request.psn, self.next);
        if ahead > 0 && self.stretch(request.psn, stats) {
            ahead = 0;
        }
        let span = self.span(request, stats.pmtu);
        if request.op.class == Class::ReadRequest {
            let certain = if stats.pmtu_guessed { 0 } else { stats.pmtu };
            self.note_read(request, span, certain, context);
        }
        if ahead >= 0 {
            self.new_packet(request, span, ahead as u32, stats, context);
        } else {
            self.passed_packet(request, span, stats, context);
        }
        let icrc_and_time = (request.psn, request.icrc, request.at.time_ns);
        self.last = Some(icrc_and_time);
        self.note_window(stats);
    }

    /// The PSN that the sender has not used yet.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Between messages, and nothing is pending: only the next PSN is of interest.
    #[inline]
    pub(super) fn is_calm(&mut self, pmtu: u32) -> bool {
        pmtu == self.mtu && (self.calm || self.calms_down())
    }

    fn calms_down(&mut self) -> bool {
        self.calm = self.started
            && self.next == self.cursor
            && self.run.is_none()
            && self.unsent.is_none()
            && self.elastic.is_none()
            && self.ahead.is_empty()
            && self.holes.is_empty()
            && self.assembly.is_between();
        self.calm
    }

    /// Take the next `count` (not 0) packets, all whole messages, while [`Self::is_calm`]. `at` tells
    /// the place of each, `icrc` is the last one's.
    #[inline]
    pub(super) fn advance(
        &mut self,
        count: usize,
        at: impl Fn(usize) -> At,
        icrc: u32,
        reliable: bool,
    ) {
        let first = self.next;
        let key = |index: usize| psn::add(first, index as u32);
        if reliable {
            let excess = (self.outstanding.len() + count).saturating_sub(MAX_OUTSTANDING);
            if excess > 0 {
                self.outstanding.drain(..excess.min(self.outstanding.len()));
                self.inexact = true;
            }
            let kept = count.saturating_sub(MAX_OUTSTANDING)..count;
            let kept = kept.map(|index| Outstanding { key: key(index), at: at(index) });
            self.outstanding.extend(kept);
        }
        self.last = Some((key(count - 1), icrc, at(count - 1).time_ns));
        self.next = key(count);
        self.cursor = self.next;
        self.assembly.pass();
    }

    #[inline]
    pub(super) fn note_window(&self, stats: &mut Stats) {
        let window = psn::diff(self.next, self.acked).max(0) as u32;
        stats.max_outstanding = stats.max_outstanding.max(window);
    }

    #[inline]
    fn note_outstanding(&mut self, key: u32, at: At) {
        if self.outstanding.len() >= MAX_OUTSTANDING {
            self.outstanding.pop_front();
            self.inexact = true;
        }
        self.outstanding.push_back(Outstanding { key, at });
    }

    fn span(&self, request: &Request, pmtu: u32) -> u32 {
        match (request.op.class, request.reth) {
            (Class::ReadRequest, Some(reth)) if pmtu > 0 => reth.len.div_ceil(pmtu).max(1),
            // a READ that comes into a gap has its PSNs there
            (Class::ReadRequest, Some(reth)) => {
                let hole = self.hole_at(request.psn).and_then(|index| self.holes.get(index));
                let room = hole.map_or(1, |hole| psn::diff(hole.to, request.psn).unsigned_abs());
                let spans = PATH_MTUS.map(|mtu| reth.len.div_ceil(mtu).max(1));
                let exact = spans.into_iter().find(|&span| span == room);
                exact.or(spans.into_iter().find(|&span| span < room)).unwrap_or(1)
            }
            _ => 1,
        }
    }

    /// The PSNs after a READ tell the path MTU where no data packet has told it yet.
    fn stretch(&mut self, to: u32, stats: &mut Stats) -> bool {
        let Some((from, len)) = self.elastic.take() else { return false };
        let fits = |&mtu: &u32| psn::add(from, len.div_ceil(mtu)) == to;
        let Some(mtu) = PATH_MTUS.into_iter().rev().find(fits) else { return false };
        self.set_span(from, len, mtu);
        stats.pmtu = mtu;
        stats.pmtu_guessed = true;
        true
    }

    fn set_span(&mut self, from: u32, len: u32, mtu: u32) {
        let end = psn::add(from, len.div_ceil(mtu).max(1));
        if self.cursor == self.next {
            self.cursor = end;
        }
        self.next = end;
        if let Some(read) = self.reads.iter_mut().rev().find(|read| read.psn == from) {
            read.end = end;
        }
    }

    /// The path MTU became known: READs that came before span what they must.
    pub(super) fn learn_mtu(&mut self, mtu: u32) {
        self.mtu = mtu;
        self.calm = false;
        if mtu == 0 {
            return;
        }
        if let Some((from, len)) = self.elastic.take() {
            self.set_span(from, len, mtu);
        }
        for index in 0..self.reads.len() {
            let Some(read) = self.reads.get_mut(index) else { break };
            let short = read.end;
            let end = psn::add(read.psn, read.reth.len.div_ceil(mtu).max(1));
            if psn::before(short, end) {
                read.end = end;
                self.fill_hole(short, end);
                if self.cursor == short {
                    self.cursor = end;
                }
            } else if psn::before(end, short) {
                // an MTU guessed too small: what seemed the READ's was a packet that is missing
                read.end = end;
                self.inexact = true;
            }
        }
    }

    fn note_read(&mut self, request: &Request, span: u32, pmtu: u32, context: &mut Context<'_>) {
        let Some(reth) = request.reth else { return };
        let passed = psn::before(request.psn, self.next);
        if let Some(read) = self.read_mut(request.psn).filter(|_| passed) {
            let again = read.again.filter(|&again| psn::before(again, request.psn));
            read.again = again.or(Some(request.psn));
            let read = *read;
            let behind = psn::diff(request.psn, read.psn).unsigned_abs();
            let skipped = u64::from(behind) * u64::from(pmtu);
            let right = reth.va == read.reth.va.wrapping_add(skipped)
                && u64::from(reth.len) + skipped == u64::from(read.reth.len);
            if !right && (pmtu > 0 || behind == 0) {
                context.find(Rule::ReadReissue, request.at, false, || {
                    format!(
                        "READ issued again at PSN {} for {} bytes at {:#x}; the READ at PSN {} asked \
                         for {} at {:#x}",
                        request.psn, reth.len, reth.va, read.psn, read.reth.len, read.reth.va
                    )
                });
            }
            return;
        }
        if self.reads.len() >= MAX_READS {
            self.reads.pop_front();
        }
        let end = psn::add(request.psn, span);
        let Request { psn, at, .. } = *request;
        let read = Read { psn, end, reth, at, again: None, told: false };
        self.reads.push_back(read);
    }

    fn new_packet(
        &mut self,
        request: &Request,
        span: u32,
        jumped: u32,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        self.end_run(End::New, stats, context);
        let status = if jumped > 0 { PsnStatus::Gap } else { PsnStatus::New };
        context.verdicts.tell(|| Verdict::Status { packet: request.at.packet, status });
        if let Some((acked, at)) = self.unsent.take() {
            if jumped == 0 && !psn::before(acked, request.psn) {
                context.find(Rule::AckUnsent, at, false, || {
                    format!(
                        "acknowledges PSN {acked}, which was sent only in packet {}",
                        request.at.packet
                    )
                });
            }
        }
        if jumped > 0 {
            stats.gaps += 1;
            stats.missing += u64::from(jumped);
            self.inexact = true;
            if self.holes.len() >= MAX_HOLES {
                self.give_up_hole(context);
            }
            let hole = Hole { from: self.next, to: request.psn, at: request.at, told: false };
            self.holes.push_back(hole);
        }
        self.next = psn::add(request.psn, span);
        self.elastic = match (request.op.class, request.reth) {
            (Class::ReadRequest, Some(reth)) if stats.pmtu == 0 && reth.len > PATH_MTUS[0] => {
                Some((request.psn, reth.len))
            }
            _ => None,
        };
        if request.reliable && request.op.position.ends() {
            self.note_outstanding(request.psn, request.at);
        }
        self.feed(request, span, stats, context);
    }

    fn passed_packet(
        &mut self,
        request: &Request,
        span: u32,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        stats.count_passed(request.at.time_ns, request.op.is_data());
        self.inexact = true;
        self.karn = Some(self.next);
        let seen = self.seen(request.psn);
        let acked = psn::before(request.psn, self.acked);
        let end = psn::add(request.psn, span);
        let continues = self.run.is_some_and(|run| {
            let from = psn::diff(request.psn, run.pos);
            from == 0 || (from > 0 && run.packets > 1)
        });
        if !continues {
            self.end_run(End::Again, stats, context);
            let cause = self.cause(request, context);
            let copy = self.last.is_some_and(|(psn, icrc, time_ns)| {
                (psn, icrc) == (request.psn, request.icrc)
                    && request.at.time_ns.saturating_sub(time_ns) < DUPLICATE_NS
            });
            self.run = Some(Run {
                first: request.psn,
                pos: end,
                packets: 0,
                fills: false,
                acked: true,
                copy,
                cause,
                at: request.at,
            });
        }
        if let Some(run) = &mut self.run {
            if run.pos != request.psn && continues {
                self.skipped = Some((run.pos, request.psn));
            }
            run.packets += 1;
            run.pos = end;
            run.fills |= !seen;
            run.acked &= acked;
            let run = run.at.packet;
            context.verdicts.tell(|| Verdict::InRun { packet: request.at.packet, run });
        }
        if psn::before(self.next, end) {
            self.next = end;
        }
        if !seen {
            if self.run.is_some_and(|run| run.cause == Cause::Unknown) {
                self.disordered = Some((request.psn, self.next));
            }
            self.fill_hole(request.psn, end);
            self.feed(request, span, stats, context);
        }
    }

    fn cause(&mut self, request: &Request, context: &mut Context<'_>) -> Cause {
        if self.older_nak.take_if(|nak| nak.psn == request.psn).is_some() {
            return Cause::Nak;
        }
        if let Some(nak) = self.nak.as_mut().filter(|nak| !nak.answered) {
            nak.answered = true;
            let nak = *nak;
            let off = psn::diff(request.psn, nak.psn);
            if off != 0 {
                // a start too late may be one whose first packets were lost on the way to here
                context.find(Rule::RetransmitStart, request.at, off > 0, || {
                    format!(
                        "sending starts again at PSN {}, the NAK in packet {} asked for {}",
                        request.psn, nak.at.packet, nak.psn
                    )
                });
            }
            return Cause::Nak;
        }
        if let Some(rnr) = self.rnr.take_if(|rnr| !psn::before(rnr.psn, request.psn)) {
            let waited = request.at.time_ns.saturating_sub(rnr.at.time_ns);
            if u64::try_from(waited).unwrap_or(0) < rnr.delay_ns {
                context.find(Rule::RnrBackoff, request.at, false, || {
                    format!(
                        "sent again {waited} ns after the RNR NAK in packet {}, which asks for {} ns",
                        rnr.at.packet, rnr.delay_ns
                    )
                });
            }
            return Cause::Rnr;
        }
        if request.op.class == Class::ReadRequest && context.response_gap == Some(request.psn) {
            return Cause::ResponseGap;
        }
        Cause::Unknown
    }

    fn end_run(&mut self, end: End, stats: &mut Stats, context: &mut Context<'_>) {
        let Some(run) = self.run.take() else { return };
        let went_through = !psn::before(run.pos, self.next);
        let last = psn::add(run.pos, u32::MAX);
        let count = &mut stats.retransmissions;
        let status = match run.cause {
            Cause::Nak => {
                count.after_nak += run.packets;
                if !went_through && end == End::New {
                    let next = self.next;
                    context.find(Rule::SelectiveRepeat, run.at, false, || {
                        format!(
                            "only PSN {} to {last} is sent again after the NAK, then PSN {next}",
                            run.first
                        )
                    });
                }
                PsnStatus::AfterNak
            }
            Cause::Rnr => {
                count.after_rnr += run.packets;
                PsnStatus::AfterRnr
            }
            Cause::ResponseGap => {
                count.after_response_gap += run.packets;
                PsnStatus::AfterResponseGap
            }
            Cause::Unknown => self.end_unknown_run(run, end, went_through, stats, context),
        };
        context.verdicts.tell(|| Verdict::Run { run: run.at.packet, status });
    }

    fn end_unknown_run(
        &self,
        run: Run,
        end: End,
        went_through: bool,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) -> PsnStatus {
        let count = &mut stats.retransmissions;
        let (first, packets) = (run.first, run.packets);
        // one packet, and then nothing, or another start: that tells little
        let lone = packets == 1 && !went_through;
        let open = lone && (end == End::Capture || (end == End::Again && run.fills));
        let stayed = (!went_through && end == End::New) || open || !self.reliable;
        if stayed && run.fills {
            stats.out_of_order += packets;
            context.find(Rule::Reorder, run.at, open, || {
                format!("PSN {first} comes late, {packets} packet(s); the sender did not go back")
            });
            PsnStatus::OutOfOrder
        } else if stayed || (run.copy && packets == 1) {
            stats.duplicates += packets;
            context.find(Rule::Duplicate, run.at, open, || {
                format!("PSN {first} comes twice, {packets} packet(s); the sender did not go back")
            });
            PsnStatus::Duplicate
        } else if run.fills {
            count.after_timeout += packets;
            context.find(Rule::Loss, run.at, false, || {
                format!(
                    "PSN {first} was not captured before it was sent again without a NAK: lost \
                     before the capture point, or sent again after a NAK that was not captured"
                )
            });
            PsnStatus::AfterTimeout
        } else if run.acked {
            count.spurious += packets;
            context.find(Rule::SpuriousRetransmission, run.at, true, || {
                format!(
                    "{packets} packet(s) from PSN {first} are sent again although the capture shows \
                     them acknowledged: too early, or the ACK was lost behind the capture point"
                )
            });
            PsnStatus::Spurious
        } else {
            let visible = context.visible;
            if visible {
                count.after_timeout += packets;
            } else {
                count.ambiguous += packets;
            }
            context.find(Rule::Timeout, run.at, true, || {
                let why = if visible {
                    "the request was lost behind the capture point, or its answer before it"
                } else {
                    "the other direction was not captured"
                };
                format!("{packets} packet(s) from PSN {first} are sent again without a NAK: {why}")
            });
            if visible { PsnStatus::AfterTimeout } else { PsnStatus::Ambiguous }
        }
    }

    /// The capture has a packet of this PSN.
    fn seen(&self, at: u32) -> bool {
        psn::before(at, self.cursor) || self.find_ahead(at).is_ok()
    }

    fn find_ahead(&self, at: u32) -> Result<usize, usize> {
        self.ahead.binary_search_by(|piece| psn::diff(piece.psn, at).cmp(&0))
    }

    fn hole_at(&self, at: u32) -> Option<usize> {
        let within = |hole: &Hole| !psn::before(at, hole.from) && psn::before(at, hole.to);
        self.holes.iter().position(within)
    }

    fn fill_hole(&mut self, at: u32, end: u32) {
        let Some(index) = self.hole_at(at) else { return };
        let Some(hole) = self.holes.remove(index) else { return };
        if psn::before(end, hole.to) {
            self.holes.insert(index, Hole { from: end, ..hole });
        }
        if hole.from != at && self.holes.len() < MAX_HOLES {
            self.holes.insert(index, Hole { to: at, ..hole });
        }
    }

    fn feed(&mut self, request: &Request, span: u32, stats: &mut Stats, context: &mut Context<'_>) {
        let piece = Piece {
            psn: request.psn,
            span,
            op: request.op,
            bytes: request.bytes,
            wire: request.wire,
            reth_len: request.reth.map(|reth| reth.len),
            at: request.at,
        };
        if piece.psn == self.cursor {
            self.assembly.take(&piece, stats, context);
            self.cursor = psn::add(piece.psn, span);
            self.drain(stats, context);
        } else if let Err(index) = self.find_ahead(piece.psn) {
            self.ahead.insert(index, piece);
            if self.ahead.len() > MAX_AHEAD {
                self.skip_hole(stats, context);
            }
        }
    }

    fn drain(&mut self, stats: &mut Stats, context: &mut Context<'_>) {
        while let Some(piece) = self.ahead.front().copied() {
            if psn::before(self.cursor, piece.psn) {
                break;
            }
            self.ahead.pop_front();
            if piece.psn == self.cursor {
                self.assembly.take(&piece, stats, context);
                self.cursor = psn::add(piece.psn, piece.span);
            }
        }
        // a READ's span may have become known after its piece was kept
        if self.ahead.is_empty() && self.holes.is_empty() {
            self.cursor = self.next;
        }
    }

    fn skip_hole(&mut self, stats: &mut Stats, context: &mut Context<'_>) {
        if let Some(front) = self.ahead.front() {
            self.cursor = front.psn;
            self.assembly.skip(stats);
            self.drain(stats, context);
        }
    }

    /// Everything up to and with `at_psn` was received.
    pub(super) fn acknowledge(
        &mut self,
        at_psn: u32,
        at: At,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) -> Acked {
        let mut done = Acked::default();
        if !self.started {
            return done;
        }
        if !psn::before(at_psn, self.next) {
            if self.elastic.is_none() {
                self.unsent = Some((at_psn, at));
                self.calm = false;
                done.early = true;
            }
            self.inexact = true;
            return done;
        }
        let ahead = psn::diff(psn::add(at_psn, 1), self.acked);
        if ahead <= 0 {
            // the first ACK after a capture began midway may lie before all that was captured
            done.regress = ahead < 0 && !self.inexact;
            return done;
        }
        self.acked = psn::add(at_psn, 1);
        done.advanced = true;
        while let Some(front) = self.outstanding.front().copied() {
            if psn::before(at_psn, front.key) {
                break;
            }
            self.outstanding.pop_front();
            done.messages += 1;
            let certain = self.karn.is_none_or(|karn| !psn::before(front.key, karn));
            done.answers = certain.then_some(front.at);
            if certain {
                let ns = at.time_ns.saturating_sub(front.at.time_ns);
                stats.latency.add(u64::try_from(ns).unwrap_or(0));
            }
        }
        if self.karn.is_some_and(|karn| !psn::before(at_psn, psn::add(karn, u32::MAX))) {
            self.karn = None;
        }
        while let Some(read) = self.reads.front() {
            // a response may still be sent again: READs stay for a while after their answer
            if self.reads.len() <= MAX_READS / 2 || psn::before(at_psn, read.end) {
                break;
            }
            self.reads.pop_front();
        }
        self.pass_holes(at_psn, at, stats, context);
        done.exact = !std::mem::take(&mut self.inexact);
        self.rnr.take_if(|rnr| !psn::before(at_psn, rnr.psn));
        done
    }

    /// The receiver has what the capture lacks: the capture lost it.
    fn pass_holes(&mut self, to: u32, at: At, stats: &mut Stats, context: &mut Context<'_>) {
        while let Some(hole) = self.holes.front().copied() {
            if psn::before(to, hole.from) {
                break;
            }
            self.holes.pop_front();
            self.inexact = true;
            let last = psn::add(hole.to, u32::MAX);
            context.find(Rule::CaptureGap, hole.at, false, || {
                format!(
                    "PSN {} to {last} were not captured, yet packet {} acknowledges them: the \
                     capture lost them",
                    hole.from, at.packet
                )
            });
            let behind = psn::add(to, 1);
            if psn::before(behind, hole.to) {
                self.holes.push_front(Hole { from: behind, ..hole });
                break;
            }
            if !psn::before(self.cursor, hole.from) {
                self.skip_hole(stats, context);
            }
        }
    }

    /// The responder misses `at_psn`.
    pub(super) fn nak(
        &mut self,
        at_psn: u32,
        at: At,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        if !self.started {
            return;
        }
        if let Some(nak) = self.nak.filter(|nak| nak.psn == at_psn && !nak.answered) {
            context.find(Rule::NakRepeated, at, false, || {
                format!(
                    "a second NAK for PSN {at_psn} after packet {}, before it was sent again",
                    nak.at.packet
                )
            });
            return;
        }
        self.older_nak = self.nak.filter(|nak| !nak.answered);
        self.nak = Some(Nak { psn: at_psn, at, answered: false });
        self.inexact = true;
        if psn::before(at_psn, self.acked) {
            context.find(Rule::NakPsn, at, false, || {
                format!("NAK for PSN {at_psn}, although PSN {} was acknowledged before", {
                    psn::add(self.acked, u32::MAX)
                })
            });
            return;
        }
        if !psn::before(at_psn, self.next) {
            context.find(Rule::NakPsn, at, true, || {
                format!("NAK for PSN {at_psn}, which the capture has not seen sent")
            });
            return;
        }
        if at_psn != self.acked {
            self.acknowledge(psn::add(at_psn, u32::MAX), at, stats, context);
        }
        self.inexact = true;
        if let Some((_, corrupt)) = self.corrupt.filter(|&(psn, _)| psn == at_psn) {
            context.find(Rule::Loss, at, false, || {
                format!("NAK for PSN {at_psn}: packet {} carries it, corrupted", corrupt.packet)
            });
            return;
        }
        let between =
            |&(from, to): &(u32, u32)| !psn::before(at_psn, from) && psn::before(at_psn, to);
        if self.disordered.as_ref().is_some_and(between) {
            return;
        }
        let seen = self.seen(at_psn) && !self.skipped.as_ref().is_some_and(between);
        context.find(Rule::Loss, at, false, || {
            if seen {
                format!("NAK for PSN {at_psn}, which was captured: lost behind the capture point")
            } else {
                format!(
                    "NAK for PSN {at_psn}, which was not captured: lost before the capture point"
                )
            }
        });
        let within =
            |hole: &&mut Hole| !psn::before(at_psn, hole.from) && psn::before(at_psn, hole.to);
        if let Some(hole) = self.holes.iter_mut().find(within) {
            hole.told = true;
        }
    }

    /// The responder was not ready for `at_psn`.
    pub(super) fn rnr(
        &mut self,
        at_psn: u32,
        delay_ns: u64,
        at: At,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        if psn::before(self.acked, at_psn) {
            self.acknowledge(psn::add(at_psn, u32::MAX), at, stats, context);
        }
        self.inexact = true;
        self.rnr = Some(Rnr { psn: at_psn, at, delay_ns });
    }

    /// No more packets will come.
    pub(super) fn finish(&mut self, stats: &mut Stats, context: &mut Context<'_>) {
        self.end_run(End::Capture, stats, context);
        if let Some((acked, at)) = self.unsent.take() {
            context.find(Rule::AckUnsent, at, true, || {
                format!("acknowledges PSN {acked}, which the capture has not seen sent")
            });
        }
        while !self.ahead.is_empty() {
            self.skip_hole(stats, context);
        }
        while !self.holes.is_empty() {
            self.give_up_hole(context);
        }
    }

    fn give_up_hole(&mut self, context: &mut Context<'_>) {
        let Some(hole) = self.holes.pop_front().filter(|hole| !hole.told) else { return };
        let last = psn::add(hole.to, u32::MAX);
        context.find(Rule::Loss, hole.at, true, || {
            format!(
                "PSN {} to {last} were not captured, and nothing shows whether they arrived",
                hole.from
            )
        });
    }
}
