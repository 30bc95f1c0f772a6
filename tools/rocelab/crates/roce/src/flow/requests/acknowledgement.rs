// SPDX-License-Identifier: GPL-2.0-or-later
//! The responder's acknowledgements: ACK, NAK, RNR NAK.

use super::Requests;
use super::gaps::Hole;
use crate::finding::{At, Rule};
use crate::flow::context::Context;
use crate::flow::psn;
use crate::flow::stats::Stats;

#[derive(Clone, Copy, Debug)]
pub(super) struct Nak {
    pub(super) psn: u32,
    pub(super) at: At,
    pub(super) answered: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rnr {
    pub(super) psn: u32,
    pub(super) at: At,
    pub(super) delay_ns: u64,
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::flow) struct Acked {
    pub(in crate::flow) messages: u32,
    pub(in crate::flow) regress: bool,
    /// Whether it acknowledged anything new.
    pub(in crate::flow) advanced: bool,
    /// Whether all that it covers was captured, so that its MSN can be checked.
    pub(in crate::flow) exact: bool,
    /// Whether its PSN was not sent yet.
    pub(in crate::flow) early: bool,
    /// The last packet of the newest message that it answers, if that was sent only once.
    pub(in crate::flow) answers: Option<At>,
}

impl Requests {
    /// The responder counts its messages from the start again although PSNs were skipped: what was
    /// skipped did not exist. Returns how many PSNs, if any.
    pub(in crate::flow) fn skip_to_restart(&mut self, at_psn: u32, stats: &mut Stats) -> u64 {
        let mut skipped = 0;
        while let Some(hole) = self.holes.front().filter(|hole| !psn::before(at_psn, hole.to)) {
            skipped += u64::from(psn::diff(hole.to, hole.from).unsigned_abs());
            stats.gaps = stats.gaps.saturating_sub(1);
            self.holes.pop_front();
        }
        stats.missing = stats.missing.saturating_sub(skipped);
        skipped
    }

    /// Everything up to and with `at_psn` was received.
    pub(in crate::flow) fn acknowledge(
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
            if self.open_read.is_none() {
                self.unsent = Some((at_psn, at));
                self.idle = false;
                done.early = true;
            }
            self.note_inexact();
            return done;
        }
        let ahead = psn::diff(psn::add(at_psn, 1), self.acked);
        if ahead <= 0 {
            // if the capture starts in mid-traffic, the first ACK may be for earlier packets
            done.regress = ahead < 0 && self.inexact_to.is_none();
            return done;
        }
        done.exact = self.inexact_to.is_none_or(|to| !psn::before(self.acked, to));
        self.acked = psn::add(at_psn, 1);
        self.inexact_to.take_if(|to| !psn::before(at_psn, psn::add(*to, psn::MASK)));
        self.confirmed = true;
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
        self.forget_reads(at_psn);
        if let Some(one) = self.discarded.take_if(|one| !psn::before(at_psn, one.from)) {
            self.tell_selective_repeat(&one, false, context);
        }
        self.pass_holes(at_psn, at, stats, context);
        if let Some(messages) = &mut self.acked_in_order {
            *messages += done.messages;
        }
        self.rnr.take_if(|rnr| !psn::before(at_psn, rnr.psn));
        done
    }

    /// Takes a sequence NAK: the responder lacks `at_psn`.
    pub(in crate::flow) fn nak(
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
        self.note_inexact();
        if psn::before(at_psn, self.acked) && !self.confirmed {
            let origin = self.origin;
            context.find(Rule::Loss, at, true, || {
                format!(
                    "NAK for PSN {at_psn}, before the first captured PSN {origin}: lost before the \
                     capture point, or sent before the capture began"
                )
            });
            return;
        }
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
        self.note_inexact();
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
        let discarded = self.discarded.take();
        if let Some(one) = discarded.filter(|one| between(&(one.from, one.to))) {
            context.find(Rule::Loss, at, true, || {
                format!(
                    "NAK for PSN {at_psn}, which was not captured again after packet {}: lost before \
                     the capture point; behind it if the responder keeps what comes after a gap",
                    one.at.packet
                )
            });
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

    /// Takes an RNR NAK: the responder was not ready for `at_psn`.
    pub(in crate::flow) fn rnr(
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
        self.note_inexact();
        self.rnr = Some(Rnr { psn: at_psn, at, delay_ns });
    }
}
