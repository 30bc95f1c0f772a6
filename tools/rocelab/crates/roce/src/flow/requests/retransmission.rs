// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs: what the sender retransmits from an earlier PSN, and why.

use super::{Request, Requests};
use crate::finding::{At, Rule};
use crate::flow::context::{Answer, Context};
use crate::flow::psn;
use crate::flow::stats::Stats;
use crate::flow::verdict::{PsnStatus, Verdict};
use crate::opcode::Class;

/// A copy of the very last packet within this time is a duplicate: no timeout is as short
/// (IBA volume 1, 9.7.6.1.3: 4.096 µs doubled at least once, and up to four times that; in practice ms).
const DUPLICATE_NS: i64 = 50_000;

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
    /// PSNs that were captured before.
    pub(super) twice: u64,
    /// The number of PSNs by which the first packet is late, and the time since its successor, ns.
    pub(super) late: (u32, u64),
    /// It begins too soon after the packet before it for any sender's timer.
    pub(super) prompt: bool,
    /// Every packet was acknowledged before it was sent again.
    pub(super) acked: bool,
    /// Whether it has the bytes of the packet right before it, with hardly any delay.
    pub(super) copy: bool,
    pub(super) cause: Cause,
    pub(super) at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A new PSN follows.
    New,
    /// The sender goes back once more.
    Again,
    /// The capture or the connection ends.
    Capture,
}

/// What a Go-Back-N responder discards after a NAK, and the sender did not send again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Discarded {
    /// Where sending started again.
    first: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) at: At,
}

impl Requests {
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
        self.discarded.take_if(|discarded| !psn::before(discarded.from, request.psn));
        let continues = self.retransmission.is_some_and(|resent| {
            let from = psn::diff(request.psn, resent.pos);
            from == 0 || (from > 0 && resent.packets > 1)
        });
        if !continues {
            self.end_retransmission(End::Again, stats, context);
            let cause = self.cause(request, context);
            let copy = self.last.is_some_and(|(psn, icrc, time_ns)| {
                (psn, icrc) == (request.psn, request.icrc)
                    && request.at.time_ns.saturating_sub(time_ns) < DUPLICATE_NS
            });
            let since = |time_ns| request.at.time_ns.saturating_sub(time_ns);
            let hole = self.hole_at(request.psn).and_then(|index| self.holes.get(index));
            let late_ns = hole.map_or(0, |hole| since(hole.at.time_ns).unsigned_abs());
            let behind = psn::diff(self.next, request.psn).unsigned_abs();
            self.retransmission = Some(Retransmission {
                first: request.psn,
                pos: end,
                packets: 0,
                data: 0,
                fills: false,
                twice: 0,
                late: (behind.saturating_sub(1), late_ns),
                prompt: self.last.is_some_and(|(_, _, time_ns)| since(time_ns) < DUPLICATE_NS),
                acked: true,
                copy,
                cause,
                at: request.at,
            });
        }
        if let Some(resent) = &mut self.retransmission {
            if resent.pos != request.psn && continues {
                self.skipped = Some((resent.pos, request.psn));
            }
            resent.packets += 1;
            resent.data += u64::from(request.op.is_data());
            resent.twice += u64::from(seen);
            resent.pos = end;
            resent.fills |= !seen;
            resent.acked &= acked;
            let first = resent.at.packet;
            context.verdicts.add(|| Verdict::Retransmitted { packet: request.at.packet, first });
        }
        if psn::before(self.next, end) {
            self.next = end;
        }
        if !seen {
            if self.retransmission.is_some_and(|resent| resent.cause == Cause::Unknown) {
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
                // of a late start, the first packets may have been lost before the capture point
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
            let tolerance = rnr.delay_ns / RNR_TOLERANCE;
            if u64::try_from(waited).unwrap_or(0) < rnr.delay_ns - tolerance {
                // without the RNR NAK, which may be lost behind the capture point, a timeout is lawful
                context.find(Rule::RnrBackoff, request.at, true, || {
                    format!(
                        "sent again {waited} ns after the RNR NAK in packet {}, which asks for {} ns",
                        rnr.at.packet, rnr.delay_ns
                    )
                });
            }
            return Cause::Rnr;
        }
        if request.op.class == Class::ReadRequest && context.answer != Answer::None {
            let behind = context.answer == Answer::Captured;
            let psn = request.psn;
            // a response that was captured may also be late for the requester's timer
            context.find(Rule::Loss, request.at, behind, || {
                let (what, side) = match behind {
                    false => ("was not captured", "before"),
                    true => ("was captured", "behind"),
                };
                format!(
                    "the READ response with PSN {psn} {what}, and the READ is issued again from \
                     there: lost {side} the capture point{}",
                    if behind { ", or late" } else { "" }
                )
            });
            return Cause::ResponseGap;
        }
        Cause::Unknown
    }

    pub(super) fn end_retransmission(
        &mut self,
        end: End,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        let Some(resent) = self.retransmission.take() else { return };
        let went_through = !psn::before(resent.pos, self.next);
        let count = &mut stats.retransmissions;
        let status = match resent.cause {
            Cause::Nak => {
                count.after_nak += resent.packets;
                if !went_through && end == End::New {
                    let (from, to) = (resent.pos, self.next);
                    self.discarded =
                        Some(Discarded { first: resent.first, from, to, at: resent.at });
                }
                PsnStatus::AfterNak
            }
            Cause::Rnr => {
                count.after_rnr += resent.packets;
                PsnStatus::AfterRnr
            }
            Cause::ResponseGap => {
                count.after_response_gap += resent.packets;
                PsnStatus::AfterResponseGap
            }
            Cause::Unknown => self.end_without_nak(resent, end, went_through, stats, context),
        };
        match status {
            PsnStatus::OutOfOrder | PsnStatus::Duplicate => {
                stats.uncount_passed(resent.data, resent.packets - resent.data);
            }
            _ => stats.count_again(resent.at.time_ns, resent.data),
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
                false => "the rest is acknowledged without being sent again",
            };
            format!(
                "only PSN {first} to {last} is sent again after the NAK, then PSN {next}: {more}"
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
        let stayed = (!went_through && end == End::New) || open || !self.reliable;
        if !resent.fills && resent.prompt {
            context.evidence.copies += packets;
        }
        // each comes once, and so soon after its successor that nobody can have missed it
        let soon = resent.twice == 0 && resent.late.1 < stats.least_latency_ns();
        let count = &mut stats.retransmissions;
        if resent.fills && (stayed || soon) {
            stats.out_of_order += packets;
            stats.missing = stats.missing.saturating_sub(packets - resent.twice);
            stats.reorder_depth = stats.reorder_depth.max(resent.late.0);
            stats.reorder_ns = stats.reorder_ns.max(resent.late.1);
            self.reordered.note(resent.at, packets);
            PsnStatus::OutOfOrder
        } else if stayed || (resent.copy && packets == 1) {
            stats.duplicates += packets;
            self.doubled.note(resent.at, packets);
            self.doubled_open |= open;
            PsnStatus::Duplicate
        } else if resent.fills {
            count.after_timeout += packets;
            let before_start = psn::before(first, self.origin);
            context.find(Rule::Loss, resent.at, before_start, || {
                format!(
                    "PSN {first} was not captured before it was sent again without a NAK: lost \
                     before the capture point, or sent again after a NAK that was not captured"
                )
            });
            PsnStatus::AfterTimeout
        } else if resent.acked {
            count.spurious += packets;
            context.find(Rule::SpuriousRetransmission, resent.at, true, || {
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
            context.find(Rule::Timeout, resent.at, true, || {
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
}
