// SPDX-License-Identifier: GPL-2.0-or-later
//! The responder's acknowledgements: ACK, NAK, RNR NAK.

use super::gaps::Hole;
use super::{DISORDERLY, RESTART, Requests};
use crate::finding::{At, Lost, Rule, Side};
use crate::flow::context::Context;
use crate::flow::costs::Trouble;
use crate::flow::psn;
use crate::flow::stats::Stats;
use crate::flow::verdict::{PsnStatus, Verdict};

#[derive(Clone, Copy, Debug)]
pub(super) struct Nak {
    pub(super) psn: u32,
    pub(super) at: At,
    pub(super) answered: bool,
    /// The PSN was sent again before: the NAK may be older than that.
    pub(super) repeated: bool,
    /// When the oldest message was captured that was not acknowledged before, ns since 1970.
    pub(super) since_ns: i64,
    /// Why the responder sent it, and whether the capture proves that.
    pub(super) why: (Trouble, bool),
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
    /// The last packet of the newest message that it answers, if the message was sent only once.
    pub(in crate::flow) answers: Option<At>,
}

impl Requests {
    /// Skips PSNs that never existed: the responder restarted its message count after them. Returns how
    /// many.
    pub(in crate::flow) fn skip_to_restart(
        &mut self,
        at_psn: u32,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) -> u64 {
        let mut skipped = 0;
        while let Some(hole) = self.holes.front().filter(|hole| !psn::before(at_psn, hole.to)) {
            skipped += u64::from(psn::diff(hole.to, hole.from).unsigned_abs());
            stats.gaps = stats.gaps.saturating_sub(1);
            let (packet, status) = (hole.at.packet, PsnStatus::New);
            context.verdicts.add(|| Verdict::Status { packet, status });
            self.holes.pop_front();
        }
        stats.missing = stats.missing.saturating_sub(skipped);
        skipped
    }

    /// Everything up to and including `at_psn` was received.
    pub(in crate::flow) fn acknowledge(
        &mut self,
        at_psn: u32,
        at: At,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) -> Acked {
        let mut done = Acked::default();
        self.quiet = false;
        if !self.started {
            return done;
        }
        if !psn::before(at_psn, self.next) {
            self.early = Some(at_psn);
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
            self.note_answered(at_psn);
            self.note_repeated(at, stats, context);
            // if the capture starts in mid-traffic, the first ACK may be for earlier packets
            done.regress = ahead < 0 && self.inexact_to.is_none();
            return done;
        }
        done.exact = self.inexact_to.is_none_or(|to| !psn::before(self.acked, to));
        self.acked = psn::add(at_psn, 1);
        self.early.take_if(|early| psn::diff(self.acked, *early) > RESTART);
        self.disordered.take_if(|one| !psn::before(self.acked, one.to));
        self.inexact_to.take_if(|to| !psn::before(at_psn, psn::add(*to, psn::MASK)));
        self.confirmed = true;
        done.advanced = true;
        (done.messages, done.answers) = self.answer(at_psn, at, stats);
        self.note_progress(done.answers, at, stats, context);
        if self.karn.is_some_and(|karn| !psn::before(at_psn, psn::add(karn, u32::MAX))) {
            self.karn = None;
        }
        self.forget_reads(at_psn);
        if let Some(one) = self.discarded.take_if(|one| !psn::before(at_psn, one.from)) {
            self.tell_selective_repeat(&one, one.open, context);
        }
        self.pass_holes(at_psn, at, stats, context);
        if let Some(messages) = &mut self.acked_in_order {
            *messages += done.messages;
        }
        self.rnr.take_if(|rnr| !psn::before(at_psn, rnr.psn));
        done
    }

    /// [`Self::acknowledge`] of something new, at less cost, while nothing is pending that it could settle.
    /// Returns the number of messages; `None`: something is pending.
    #[inline]
    pub(in crate::flow) fn acknowledge_in_order(
        &mut self,
        at_psn: u32,
        at: At,
        stats: &mut Stats,
        context: &Context<'_>,
    ) -> Option<u32> {
        let ready = self.is_quiet()
            && self.mtu == stats.pmtu
            && psn::before(at_psn, self.next)
            && !psn::before(at_psn, self.acked)
            && self.answered_reads(at_psn);
        if !ready {
            return None;
        }
        self.acked = psn::add(at_psn, 1);
        self.confirmed = true;
        let (messages, newest) = self.answer(at_psn, at, stats);
        self.note_progress(newest, at, stats, context);
        if let Some(all) = &mut self.acked_in_order {
            *all += messages;
        }
        Some(messages)
    }

    /// Takes the messages that end up to `at_psn` from those that wait for an answer: how many, and the last
    /// packet of the last one, if it was sent only once.
    #[inline]
    fn answer(&mut self, at_psn: u32, at: At, stats: &mut Stats) -> (u32, Option<At>) {
        let (mut messages, mut last) = (0, None);
        while let Some(front) = self.outstanding.front().filter(|one| !psn::before(at_psn, one.key))
        {
            messages += 1;
            let certain = self.karn.is_none_or(|karn| !psn::before(front.key, karn));
            last = certain.then_some(front.at);
            let ns = at.time_ns.saturating_sub(front.at.time_ns);
            let ns = u64::try_from(ns).unwrap_or(0);
            self.answered = (front.key, front.at.time_ns);
            self.outstanding.pop_front();
            if certain {
                stats.latency.add(ns);
            } else {
                stats.note_delayed(ns);
            }
        }
        (messages, last)
    }

    /// Takes a response that acknowledges something new; `newest`: the newest message that it answers.
    #[inline]
    fn note_progress(
        &mut self,
        newest: Option<At>,
        at: At,
        stats: &mut Stats,
        context: &Context<'_>,
    ) {
        let since_ns = self.last.map_or(i64::MIN, |(_, _, time_ns)| time_ns);
        let newest_ns = newest.map(|newest| newest.time_ns);
        let late = stats.pace.note_answer(since_ns, newest_ns, at.time_ns);
        if let Some(ns) = late {
            context.late(ns, at, stats);
            self.charged_ns = self.charged_ns.max(at.time_ns);
        }
    }

    /// Takes a response that acknowledges nothing new: it answers what was sent again, and may be late.
    fn note_repeated(&mut self, at: At, stats: &mut Stats, context: &Context<'_>) {
        if self.retransmission.is_some() || !self.outstanding.is_empty() {
            self.charge_late(at, stats, context);
        }
        self.repeated_ns = at.time_ns;
    }

    /// Takes a sequence NAK: the responder lacks `at_psn`. `late`: it may have been sent before the latest
    /// ACK, which overtook it.
    pub(in crate::flow) fn nak(
        &mut self,
        at_psn: u32,
        late: bool,
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
                    "second NAK for PSN {at_psn} after packet {}, before the PSN was retransmitted",
                    nak.at.packet
                )
            });
            return;
        }
        self.charge_late(at, stats, context);
        self.older_nak = self.nak.filter(|nak| !nak.answered);
        let since_ns = self.outstanding.front().map_or(at.time_ns, |oldest| oldest.at.time_ns);
        let run = self.retransmission.map(|run| (run.first, run.pos));
        let resent = |(from, to)| !psn::before(at_psn, from) && psn::before(at_psn, to);
        let repeated = [run, self.again].into_iter().flatten().any(resent);
        self.nak = Some(Nak {
            psn: at_psn,
            at,
            answered: false,
            repeated,
            since_ns,
            why: (Trouble::Loss, false),
        });
        self.note_inexact();
        let lost = |side| Lost { psn: at_psn, side, is_response: false };
        self.note_answered(at_psn);
        if psn::before(at_psn, self.acked) && !self.confirmed {
            let origin = self.origin;
            context.find_loss(lost(None), at, true, || {
                format!(
                    "NAK for PSN {at_psn}, before the first captured PSN {origin}: lost before the \
                     capture point, or sent before the capture began"
                )
            });
            return;
        }
        if psn::before(at_psn, self.acked) {
            context.find(Rule::NakPsn, at, late, || {
                format!(
                    "NAK for PSN {at_psn}, although PSN {} was already acknowledged{}",
                    psn::add(self.acked, u32::MAX),
                    if late { ": late, or wrong" } else { "" }
                )
            });
            return;
        }
        if !psn::before(at_psn, self.next) {
            context.find(Rule::NakPsn, at, true, || {
                format!("NAK for PSN {at_psn}, which the capture does not show being sent")
            });
            return;
        }
        if at_psn != self.acked {
            self.acknowledge(psn::add(at_psn, u32::MAX), at, stats, context);
        }
        self.note_passed();
        let why = self.why(at_psn, at, stats, context);
        if let Some(nak) = &mut self.nak {
            nak.why = why;
        }
    }

    /// Charges the silence before a response that is late: what follows is not lost time of a loss.
    fn charge_late(&mut self, at: At, stats: &mut Stats, context: &Context<'_>) {
        let last_ns = self.last.map_or(at.time_ns, |(_, _, time_ns)| time_ns);
        let since_ns = stats.pace.answered_ns().map_or(last_ns, |answered| answered.max(last_ns));
        let since_ns = since_ns.max(self.repeated_ns);
        let silent = u64::try_from(at.time_ns.saturating_sub(since_ns)).unwrap_or(0);
        if stats.pace.is_long(silent) {
            context.late(silent, at, stats);
            self.charged_ns = self.charged_ns.max(at.time_ns);
        }
    }

    /// Tells why the responder lacks a PSN, and whether that is certain.
    fn why(
        &mut self,
        at_psn: u32,
        at: At,
        stats: &Stats,
        context: &mut Context<'_>,
    ) -> (Trouble, bool) {
        const UNKNOWN: (Trouble, bool) = (Trouble::Loss, false);
        let lost = |side| Lost { psn: at_psn, side, is_response: false };
        if let Some(corrupt) = self.corrupted(at_psn) {
            context.find_loss(lost(Some(Side::Before)), at, false, || {
                format!("NAK for PSN {at_psn}: packet {} carried it, corrupted", corrupt.packet)
            });
            return (Trouble::Corrupted, true);
        }
        let between =
            |&(from, to): &(u32, u32)| !psn::before(at_psn, from) && psn::before(at_psn, to);
        let least_ns = stats.least_latency_ns();
        if self.disordered.is_some_and(|one| one.explains(at_psn, at.time_ns, least_ns)) {
            return (Trouble::Reordered, true);
        }
        let discarded = self.discarded.take();
        if let Some(one) = discarded.filter(|one| between(&(one.from, one.to))) {
            context.find_loss(lost(None), at, true, || {
                format!(
                    "NAK for PSN {at_psn}, which was not captured again after packet {}: lost before \
                     the capture point, or after it if the responder keeps packets after a gap",
                    one.at.packet
                )
            });
            return UNKNOWN;
        }
        if self.just_filled(at_psn, at.time_ns, stats.least_latency_ns()) {
            context.find_loss(lost(None), at, true, || {
                format!(
                    "NAK for PSN {at_psn}, which was captured only now, retransmitted: its first copy was \
                     lost before the capture point, or this one after it"
                )
            });
            return UNKNOWN;
        }
        // no responder asks for the middle of a READ: it spans less, and the packet was not captured
        let within_read = self.read_at(at_psn).is_some_and(|read| read.psn != at_psn);
        let skipped = self.skipped.iter().find(|one| one.contains(at_psn));
        if skipped.is_some_and(|one| !one.sure) {
            context.find_loss(lost(None), at, true, || {
                format!(
                    "NAK for PSN {at_psn}, which was not captured again when others were: lost before \
                     the capture point, or after it if the responder keeps packets after a gap"
                )
            });
            return UNKNOWN;
        }
        let seen = self.seen(at_psn) && !within_read && skipped.is_none();
        if self.reordered.count >= DISORDERLY {
            context.find_loss(lost(None), at, true, || {
                format!("NAK for PSN {at_psn}: lost, or overtaken like others of this connection")
            });
            return (Trouble::Reordered, false);
        }
        let side = if seen { Side::Behind } else { Side::Before };
        context.find_loss(lost(Some(side)), at, false, || {
            if seen {
                format!("NAK for PSN {at_psn}, which was captured: lost after the capture point")
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
        (if seen { Trouble::LossFar } else { Trouble::LossNear }, true)
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
        self.quiet = false;
        if psn::before(self.acked, at_psn) {
            self.acknowledge(psn::add(at_psn, u32::MAX), at, stats, context);
        }
        self.note_answered(at_psn);
        self.note_passed();
        self.rnr = Some(Rnr { psn: at_psn, at, delay_ns });
    }
}
