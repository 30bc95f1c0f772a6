// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs: what the sender retransmits from an earlier PSN, and why.

use super::{Request, Requests};
use crate::finding::{At, Rule};
use crate::flow::context::Context;
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
    pub(super) fills: bool,
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

impl Requests {
    pub(super) fn resent_packet(
        &mut self,
        request: &Request,
        span: u32,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        stats.count_passed(request.at.time_ns, request.op.is_data());
        self.note_inexact();
        self.karn = Some(self.next);
        let seen = self.seen(request.psn);
        let acked = psn::before(request.psn, self.acked);
        let end = psn::add(request.psn, span);
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
            self.retransmission = Some(Retransmission {
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
        if let Some(resent) = &mut self.retransmission {
            if resent.pos != request.psn && continues {
                self.skipped = Some((resent.pos, request.psn));
            }
            resent.packets += 1;
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
        if request.op.class == Class::ReadRequest && context.response_gap == Some(request.psn) {
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
        let last = psn::add(resent.pos, u32::MAX);
        let count = &mut stats.retransmissions;
        let status = match resent.cause {
            Cause::Nak => {
                count.after_nak += resent.packets;
                if !went_through && end == End::New {
                    let next = self.next;
                    context.find(Rule::SelectiveRepeat, resent.at, false, || {
                        format!(
                            "only PSN {} to {last} is sent again after the NAK, then PSN {next}",
                            resent.first
                        )
                    });
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
        context.verdicts.add(|| Verdict::Retransmission { first: resent.at.packet, status });
    }

    fn end_without_nak(
        &self,
        resent: Retransmission,
        end: End,
        went_through: bool,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) -> PsnStatus {
        let count = &mut stats.retransmissions;
        let (first, packets) = (resent.first, resent.packets);
        // a single packet, followed by nothing or by another start, is inconclusive
        let lone = packets == 1 && !went_through;
        let open = lone && (end == End::Capture || (end == End::Again && resent.fills));
        let stayed = (!went_through && end == End::New) || open || !self.reliable;
        if stayed && resent.fills {
            stats.out_of_order += packets;
            context.find(Rule::Reorder, resent.at, open, || {
                format!("PSN {first} comes late, {packets} packet(s); the sender did not go back")
            });
            PsnStatus::OutOfOrder
        } else if stayed || (resent.copy && packets == 1) {
            stats.duplicates += packets;
            context.find(Rule::Duplicate, resent.at, open, || {
                format!("PSN {first} comes twice, {packets} packet(s); the sender did not go back")
            });
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
