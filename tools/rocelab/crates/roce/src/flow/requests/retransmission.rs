// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs: what the sender retransmits from an earlier PSN, and why.

use super::acknowledgement::Nak;
use super::delay::Delay;
use super::{Request, Requests};
use crate::finding::{At, Lost, Rule, Side};
use crate::flow::context::{Answer, Context};
use crate::flow::costs::{Repair, Trouble};
use crate::flow::psn;
use crate::flow::stats::Stats;
use crate::flow::verdict::{PsnStatus, Verdict};

/// A copy of the very last packet within this time is a duplicate: no timeout is as short
/// (IBA volume 1, 9.7.6.1.3: 4.096 µs doubled at least once, and up to four times that; in practice ms).
const DUPLICATE_NS: i64 = 50_000;
/// Gaps in what was sent again that are kept.
const MAX_SKIPPED: usize = 16;

/// Tolerance for an RNR delay between different clocks: 1 %.
const RNR_TOLERANCE: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Nak,
    Rnr,
    ResponseGap,
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Retransmission {
    pub(super) first: u32,
    pub(super) pos: u32,
    pub(super) packets: u64,
    /// Those with payload.
    pub(super) data: u64,
    pub(super) fills: bool,
    /// The first PSN that was not captured before.
    pub(super) missing: Option<u32>,
    /// PSNs that were captured before.
    pub(super) twice: u64,
    /// How late the first packet is, in PSNs, and the time since its successor, ns.
    pub(super) late: (u32, u64),
    /// It begins sooner after the preceding packet than any sender's timer allows.
    pub(super) prompt: bool,
    /// The time from the packet before it, ns.
    pub(super) since_ns: u64,
    /// Every packet was acknowledged before its retransmission.
    pub(super) acked: bool,
    /// Whether it has the bytes of the packet right before it, with hardly any delay.
    pub(super) copy: bool,
    /// It begins with a READ or an atomic, which is sent again without a NAK if a later response comes.
    pub(super) needs_answer: bool,
    pub(super) cause: Cause,
    pub(super) delay: Delay,
    pub(super) at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The next PSN follows.
    New,
    /// A later PSN follows: those before it were not captured.
    Gap,
    /// The sender goes back once more.
    Again,
    /// The capture or the connection ends.
    Capture,
}

/// Packets that a Go-Back-N responder discards after a NAK, and the sender did not retransmit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Discarded {
    /// Where the retransmission started.
    first: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    /// The responder may have what it is said to discard: the NAK may be older than another retransmission.
    pub(super) open: bool,
    pub(super) at: At,
}

/// PSNs that a Go-Back-N receiver discards after reordering: a NAK for them shows no loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disordered {
    from: u32,
    pub(super) to: u32,
    /// The packet that came late.
    late: u64,
    /// When the sender began to send again, ns since 1970.
    again_ns: Option<i64>,
}

impl Disordered {
    /// Whether reordering is the reason of a NAK: it answers none of the packets that were sent again.
    pub(super) fn explains(&self, at: u32, time_ns: i64, least_latency_ns: u64) -> bool {
        let soon = |again_ns| {
            u64::try_from(time_ns.saturating_sub(again_ns)).unwrap_or(0) < least_latency_ns
        };
        !psn::before(at, self.from) && psn::before(at, self.to) && self.again_ns.is_none_or(soon)
    }
}

/// PSNs that the sender left out when it sent others again, as far as the capture shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skipped {
    from: u32,
    to: u32,
    /// It went back and sent everything again: the capture lacks these PSNs because they were lost.
    pub(super) sure: bool,
}

impl Skipped {
    pub(super) fn contains(&self, at: u32) -> bool {
        !psn::before(at, self.from) && psn::before(at, self.to)
    }
}

impl Requests {
    /// Notes PSNs that were not captured although later ones were.
    pub(super) fn note_skipped(&mut self, from: u32, to: u32, sure: bool) {
        if self.skipped.len() >= MAX_SKIPPED {
            self.skipped.pop_front();
        }
        self.skipped.push_back(Skipped { from, to, sure });
    }

    /// A packet was captured again after all.
    fn fill_skipped(&mut self, from: u32, to: u32, time_ns: i64) {
        let Some(at) = self.skipped.iter().position(|one| one.contains(from)) else { return };
        let Some(one) = self.skipped.remove(at) else { return };
        self.note_filled(from, to, time_ns);
        if psn::before(to, one.to) {
            self.note_skipped(to, one.to, one.sure);
        }
        if psn::before(one.from, from) {
            self.note_skipped(one.from, from, one.sure);
        }
    }

    pub(super) fn resent_packet(
        &mut self,
        request: &Request,
        span: u32,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        stats.count_passed(request.op.is_data());
        self.note_inexact();
        self.karn = Some(self.next);
        let seen = self.seen(request.psn);
        let acked = psn::before(request.psn, self.acked);
        let end = psn::add(request.psn, span);
        let again = |one: &mut Discarded| !psn::before(one.from, request.psn);
        if let Some(one) = self.discarded.take_if(again) {
            self.note_skipped(one.from, one.to, false);
        }
        let since = |time_ns| request.at.time_ns.saturating_sub(time_ns);
        let prompt = self.last.is_some_and(|(_, _, time_ns)| since(time_ns) < DUPLICATE_NS);
        let asked = self.nak.is_some_and(|nak| !nak.answered && nak.psn == request.psn);
        let continues = self.retransmission.is_some_and(|resent| {
            let from = psn::diff(request.psn, resent.pos);
            let went_back = resent.packets > 1 || resent.cause != Cause::Unknown;
            let jumps = from > 0 && went_back && prompt && !asked;
            from == 0 || (jumps && context.answer != Answer::Missing)
        });
        if !continues {
            let before = self.retransmission.map(|resent| resent.pos);
            if let Some(from) = before.filter(|&from| prompt && psn::before(from, request.psn)) {
                self.note_skipped(from, request.psn, false);
            }
            self.end_retransmission(End::Again, stats, context);
            let mut delay = self.delay(request, stats);
            let cause = self.cause(request, &mut delay, context);
            let copy = self.last.is_some_and(|(psn, icrc, time_ns)| {
                (psn, icrc) == (request.psn, request.icrc)
                    && request.at.time_ns.saturating_sub(time_ns) < DUPLICATE_NS
            });
            let hole = self.hole_at(request.psn).and_then(|index| self.holes.get(index));
            let late_ns = hole.map_or(0, |hole| since(hole.at.time_ns).unsigned_abs());
            let behind = psn::diff(self.next, request.psn).unsigned_abs();
            self.retransmission = Some(Retransmission {
                first: request.psn,
                pos: end,
                packets: 0,
                data: 0,
                fills: false,
                missing: None,
                twice: 0,
                late: (behind.saturating_sub(1), late_ns),
                prompt,
                since_ns: self.last.map_or(0, |(_, _, time_ns)| since(time_ns).unsigned_abs()),
                acked: true,
                copy,
                needs_answer: request.op.needs_answer(),
                cause,
                delay,
                at: request.at,
            });
        }
        self.fill_skipped(request.psn, end, request.at.time_ns);
        for one in self.corrupt.iter_mut().filter(|one| one.psn == request.psn) {
            one.repaired = true;
        }
        if let Some(resent) = self.retransmission.filter(|_| continues) {
            if resent.pos != request.psn {
                self.note_skipped(resent.pos, request.psn, resent.packets > 1);
            }
            self.charge_within(request.at, stats);
            // sent before the NAK came: the responder may have taken this copy, and what follows
            if let Some(nak) = self.nak.as_mut().filter(|nak| !nak.answered) {
                nak.repeated |= !psn::before(nak.psn, request.psn) && psn::before(nak.psn, end);
            }
        }
        if let Some(resent) = &mut self.retransmission {
            resent.packets += 1;
            resent.data += u64::from(request.op.is_data());
            resent.twice += u64::from(seen);
            if resent.twice > 0 {
                let first = resent.at.packet;
                self.disordered.take_if(|one| one.late == first);
                if let Some(one) = &mut self.disordered {
                    one.again_ns.get_or_insert(request.at.time_ns);
                }
            }
            resent.pos = end;
            resent.fills |= !seen;
            if !seen {
                resent.missing.get_or_insert(request.psn);
            }
            resent.acked &= acked;
            let first = resent.at.packet;
            if let Some(nak) = self.nak.as_mut().filter(|_| resent.cause == Cause::ResponseGap) {
                nak.answered |= nak.at.packet < first && psn::before(nak.psn, end);
            }
            context.verdicts.add(|| Verdict::Retransmitted { packet: request.at.packet, first });
        }
        if psn::before(self.next, end) {
            self.next = end;
        }
        if !seen {
            let late = |one: &Retransmission| one.cause == Cause::Unknown && one.twice == 0;
            if let Some(late) = self.retransmission.filter(late) {
                let (from, to, late) = (request.psn, self.next, late.at.packet);
                self.disordered = Some(Disordered { from, to, late, again_ns: None });
            }
            self.note_filled(request.psn, end, request.at.time_ns);
            self.fill_hole(request.psn, end);
            self.feed(request, span, stats, context);
        }
    }

    fn cause(&mut self, request: &Request, delay: &mut Delay, context: &mut Context<'_>) -> Cause {
        if let Some(nak) = self.older_nak.take_if(|nak| nak.psn == request.psn) {
            (delay.why, delay.shown) = (nak.why, nak.at);
            return Cause::Nak;
        }
        let nak = self.nak.filter(|nak| !nak.answered).map(|nak| nak.psn);
        let asked = [nak, self.rnr.map(|rnr| rnr.psn)];
        let earlier = asked.iter().flatten().any(|&asked| psn::before(request.psn, asked));
        if earlier && self.asks_again(request, delay, context) {
            return Cause::ResponseGap;
        }
        if let Some(nak) = self.nak.as_mut().filter(|nak| !nak.answered) {
            nak.answered = true;
            let nak = *nak;
            (delay.why, delay.shown) = (nak.why, nak.at);
            // an RNR NAK that came later is what the sender waited for
            if let Some(rnr) = self.rnr.filter(|rnr| rnr.at.time_ns > nak.at.time_ns) {
                (delay.why, delay.shown) = ((Trouble::NotReady, true), rnr.at);
            }
            let off = psn::diff(request.psn, nak.psn);
            let soon = request.at.time_ns.saturating_sub(nak.since_ns) < DUPLICATE_NS;
            let answers = self.reads.iter().any(|read| psn::before(read.psn, nak.psn));
            if off != 0 {
                // if it starts late, its first packets may have been lost before the capture point; if early,
                // it may follow a timeout, or ask for a response
                let open = off > 0 || !soon || answers;
                context.find(Rule::RetransmitStart, request.at, open, || {
                    format!(
                        "retransmission starts at PSN {}; the NAK in packet {} asked for {}",
                        request.psn, nak.at.packet, nak.psn
                    )
                });
            }
            return Cause::Nak;
        }
        if let Some(rnr) = self.rnr.take_if(|rnr| !psn::before(rnr.psn, request.psn)) {
            let waited = request.at.time_ns.saturating_sub(rnr.at.time_ns);
            let tolerance = rnr.delay_ns / RNR_TOLERANCE;
            (delay.why, delay.shown) = ((Trouble::NotReady, true), rnr.at);
            if u64::try_from(waited).unwrap_or(0) < rnr.delay_ns - tolerance {
                // the RNR NAK may be lost after the capture point, and then a timeout is lawful
                context.find(Rule::RnrBackoff, request.at, true, || {
                    format!(
                        "retransmitted {waited} ns after the RNR NAK in packet {}, which asks for {} ns",
                        rnr.at.packet, rnr.delay_ns
                    )
                });
            }
            return Cause::Rnr;
        }
        if self.asks_again(request, delay, context) {
            return Cause::ResponseGap;
        }
        Cause::Unknown
    }

    /// Tells which response a READ or an atomic that is sent again asks for; `false`: none is known.
    fn asks_again(&self, request: &Request, delay: &mut Delay, context: &mut Context<'_>) -> bool {
        if !request.op.needs_answer() || context.answer == Answer::None {
            return false;
        }
        let behind = context.answer == Answer::Captured;
        let psn = request.psn;
        delay.why = if behind { (Trouble::LossNear, false) } else { (Trouble::LossFar, true) };
        // a response that was captured may also be late for the requester's timer
        let side = (!behind).then_some(Side::Before);
        let lost = Lost { psn, side, is_response: true };
        context.find_loss(lost, request.at, behind, || {
            let (what, side) = match behind {
                false => ("was not captured", "before"),
                true => ("was captured", "after"),
            };
            format!(
                "the response with PSN {psn} {what}, and its request is retransmitted from there: \
                 lost {side} the capture point{}",
                if behind { ", or late" } else { "" }
            )
        });
        true
    }

    pub(super) fn end_retransmission(
        &mut self,
        end: End,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        let Some(mut resent) = self.retransmission.take() else { return };
        // a READ whose span became known only later ends it
        if let Some(read) = self.read_at(resent.pos).filter(|read| read.psn != resent.pos) {
            resent.pos = read.end;
        }
        self.again = Some((resent.first, resent.pos));
        let went_through = !psn::before(resent.pos, self.next);
        let went_back = resent.packets > 1 || resent.cause != Cause::Unknown;
        if !went_through && went_back && matches!(end, End::New | End::Gap) {
            self.note_skipped(resent.pos, self.next, false);
        }
        let (why, nak) = (resent.delay.why, Repair::Nak);
        let count = &mut stats.retransmissions;
        let status = match resent.cause {
            Cause::Nak => {
                count.after_nak += resent.packets;
                if !went_through && matches!(end, End::New | End::Gap) {
                    let (from, to) = (resent.pos, self.next);
                    let once = |nak: Nak| nak.psn == resent.first && !nak.repeated;
                    let open = !self.nak.is_some_and(once);
                    let (first, at) = (resent.first, resent.at);
                    self.discarded = Some(Discarded { first, from, to, open, at });
                }
                self.charge(&resent, why, nak, stats);
                PsnStatus::AfterNak
            }
            Cause::Rnr => {
                count.after_rnr += resent.packets;
                self.charge(&resent, why, nak, stats);
                PsnStatus::AfterRnr
            }
            Cause::ResponseGap => {
                count.after_response_gap += resent.packets;
                self.charge(&resent, why, Repair::Response, stats);
                PsnStatus::AfterResponseGap
            }
            Cause::Unknown => self.end_without_nak(resent, end, went_through, stats, context),
        };
        if !matches!(status, PsnStatus::Duplicate | PsnStatus::OutOfOrder | PsnStatus::AfterNak) {
            self.note_again(resent.first, resent.at);
        }
        match status {
            PsnStatus::OutOfOrder | PsnStatus::Duplicate => {
                stats.uncount_passed(resent.data, resent.packets - resent.data);
            }
            _ => stats.count_again(resent.at.time_ns, resent.data),
        }
        if status != PsnStatus::OutOfOrder {
            self.disordered.take_if(|one| one.late == resent.at.packet);
        }
        context.verdicts.add(|| Verdict::Retransmission { first: resent.at.packet, status });
    }

    /// The responder accepts what a Go-Back-N responder discards, or the sender does not resend it.
    pub(super) fn tell_selective_repeat(
        &self,
        discarded: &Discarded,
        ambiguous: bool,
        context: &mut Context<'_>,
    ) {
        let last = psn::add(discarded.from, u32::MAX);
        context.find(Rule::SelectiveRepeat, discarded.at, ambiguous, || {
            let (first, next) = (discarded.first, discarded.to);
            let more = match ambiguous {
                true => "the rest was lost before the capture point, or not sent",
                false => "the rest is acknowledged without a retransmission",
            };
            format!(
                "only PSNs {first} to {last} are retransmitted after the NAK, then PSN {next}: {more}"
            )
        });
    }

    fn end_without_nak(
        &mut self,
        resent: Retransmission,
        end: End,
        went_through: bool,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) -> PsnStatus {
        let (first, packets) = (resent.first, resent.packets);
        // a single packet, followed by nothing or by another start, is inconclusive
        let lone = packets == 1 && !went_through;
        let open = lone && (end == End::Capture || (end == End::Again && resent.fills));
        // of several packets behind which some are missing, the last ones may have been lost
        let next = end == End::New || (end == End::Gap && packets == 1);
        let stayed = (!went_through && next) || open || !self.reliable;
        if !resent.fills && resent.prompt {
            context.evidence.note_copies(context.segment, 0, packets);
        }
        // each appears once, and too soon after its successor for anyone to have missed it
        let soon = resent.twice == 0 && resent.late.1 < stats.least_latency_ns();
        let count = &mut stats.retransmissions;
        if resent.fills && (stayed || soon) {
            stats.out_of_order += packets;
            stats.missing = stats.missing.saturating_sub(packets - resent.twice);
            stats.reorder_depth = stats.reorder_depth.max(resent.late.0);
            stats.reorder_ns = stats.reorder_ns.max(resent.late.1);
            match psn::before(first, self.origin) {
                true => self.reordered_early.note(resent.at, packets),
                false => self.reordered.note(resent.at, packets),
            }
            PsnStatus::OutOfOrder
        } else if stayed || (resent.copy && packets == 1) {
            stats.duplicates += packets;
            self.doubled.note(resent.at, packets);
            // without a NAK, only a timer or a response that came after a gap sends it again
            let asked = resent.needs_answer || (self.nak.is_some() && !resent.copy);
            let at_once = resent.copy && resent.since_ns < stats.least_latency_ns();
            let sure = !open && (at_once || (resent.prompt && !asked && end != End::Gap));
            self.doubled_open |= !sure && self.reliable;
            PsnStatus::Duplicate
        } else if resent.fills {
            count.after_timeout += packets;
            let psn = resent.missing.unwrap_or(first);
            let before_start = psn::before(psn, self.origin);
            let side = (!before_start).then_some(Side::Before);
            let lost = Lost { psn, side, is_response: false };
            let why = match self.corrupted(psn) {
                Some(_) => (Trouble::Corrupted, true),
                None => (Trouble::LossNear, !before_start),
            };
            self.charge(&resent, why, Repair::Timeout, stats);
            context.find_loss(lost, resent.at, before_start, || {
                format!(
                    "PSN {psn} was not captured before its retransmission without a NAK: lost \
                     before the capture point, or retransmitted after a NAK that was not captured"
                )
            });
            PsnStatus::AfterTimeout
        } else if resent.acked {
            count.spurious += packets;
            self.charge(&resent, (Trouble::LossNear, false), Repair::Needless, stats);
            context.find(Rule::SpuriousRetransmission, resent.at, true, || {
                format!(
                    "{packets} packet(s) from PSN {first} are retransmitted although the capture shows \
                     them acknowledged: too early, or the ACK was lost after the capture point"
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
            let trouble = match resent.delay.why.0 {
                Trouble::Loss if visible => Trouble::LossFar,
                why => why,
            };
            self.charge(&resent, (trouble, false), Repair::Timeout, stats);
            context.find(Rule::Timeout, resent.at, true, || {
                let why = if visible {
                    "the request was lost after the capture point, or its response before it"
                } else {
                    "no answer is in the capture: not captured, or never given"
                };
                format!(
                    "{packets} packet(s) from PSN {first} are retransmitted without a NAK: {why}{}",
                    self.depth_hint(first, stats)
                )
            });
            if visible { PsnStatus::AfterTimeout } else { PsnStatus::Ambiguous }
        }
    }
}
