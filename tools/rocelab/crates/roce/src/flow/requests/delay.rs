// SPDX-License-Identifier: GPL-2.0-or-later
//! By how much what is sent again is delayed, and how many messages with it.

use super::retransmission::Retransmission;
use super::{Request, Requests};
use crate::finding::At;
use crate::flow::costs::{Charge, Repair, Trouble};
use crate::flow::psn;
use crate::flow::stats::Stats;

/// Why packets are sent again, and by how much they are delayed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    /// Why, if a response told.
    pub(super) why: (Trouble, bool),
    /// The response that told, or what was captured before.
    pub(super) shown: At,
    /// From when the first packet was sent before, ns since 1970.
    pub(super) since_ns: i64,
    /// Messages that it delays, and were not delayed before; all before this PSN.
    messages: (u64, u32),
}

impl Requests {
    /// The delay of a packet that is sent again, as far as it is known without a response to it.
    pub(super) fn delay(&self, request: &Request, stats: &Stats) -> Delay {
        let index = self.outstanding.partition_point(|one| psn::before(one.key, request.psn));
        let shown = self.outstanding.get(index).map_or(request.at, |one| one.at);
        let sent_ns = self.sent_ns(request.psn);
        // until then its responses came
        let answered_ns = stats.pace.answered_ns().filter(|_| request.op.needs_answer());
        let since_ns = answered_ns.map_or(sent_ns, |answered_ns| sent_ns.max(answered_ns));
        let since_ns = since_ns.max(self.charged_ns);
        let messages = (self.newly_delayed(request.psn), self.next);
        // nobody waits for an answer that none of these packets asks for: another one did, before the tap
        let asked = self.asked.filter(|&asked| !psn::before(asked, self.acked));
        let damaged = self.corrupt.iter().any(|one| !psn::before(one.psn, request.psn));
        let last_copy = self.lacks_last_copy(request.psn);
        let trouble = match (last_copy.or_else(|| self.lacks_last_copy(asked?)), asked) {
            (Some(trouble), _) => trouble,
            (None, Some(_)) => Trouble::Loss,
            (None, None) if damaged => Trouble::Corrupted,
            (None, None) => Trouble::LossNear,
        };
        Delay { why: (trouble, false), shown, since_ns, messages }
    }

    /// When a PSN was sent, ns since 1970: between the ends of the messages before and after it.
    pub(super) fn sent_ns(&self, at: u32) -> i64 {
        let hole = self.hole_at(at).and_then(|index| self.holes.get(index));
        if let Some(hole) = hole {
            return hole.at.time_ns;
        }
        let index = self.outstanding.partition_point(|one| psn::before(one.key, at));
        let end = |index: usize| self.outstanding.get(index).map(|one| (one.key, one.at.time_ns));
        let last = self.last.map(|(psn, _, time_ns)| (psn, time_ns));
        let from = index.checked_sub(1).and_then(end).unwrap_or(self.answered);
        let to = end(index).or(last).unwrap_or(from);
        let (all, part) = (psn::diff(to.0, from.0), psn::diff(at, from.0));
        if all <= 0 || part >= all {
            return to.1;
        }
        let span = i128::from(to.1.saturating_sub(from.1).max(0));
        let before = span * i128::from(part.max(0)) / i128::from(all);
        from.1.saturating_add(i64::try_from(before).unwrap_or(0))
    }

    /// Messages that are delayed with a PSN and were not before.
    fn newly_delayed(&self, from: u32) -> u64 {
        let known = self.delayed_to.filter(|&known| psn::before(from, known)).unwrap_or(from);
        let behind = self.outstanding.partition_point(|one| psn::before(one.key, known));
        let whole = (self.outstanding.len() - behind) as u64;
        // a message that is not whole yet, or a READ of which responses came
        if whole == 0 { u64::from(known == from) } else { whole }
    }

    /// Charges the delay of a packet of which only a corrupted copy was captured before; `false`: there is
    /// none.
    pub(super) fn charge_damaged(&mut self, request: &Request, stats: &mut Stats) -> bool {
        if self.corrupt.is_empty() {
            return false;
        }
        let (psn, until) = (request.psn, request.at);
        let Some(shown) = self.corrupted(psn) else { return false };
        self.corrupt.retain(|one| one.psn != psn);
        let since_ns = shown.time_ns.max(self.charged_ns);
        let ns = u64::try_from(until.time_ns.saturating_sub(since_ns)).unwrap_or(0);
        self.charged_ns = self.charged_ns.max(until.time_ns);
        let (trouble, repair, messages) = (Trouble::Corrupted, Repair::Timeout, 1);
        stats.charge(Charge { trouble, repair, sure: true, ns, messages, shown, until });
        true
    }

    /// Charges a long silence in the midst of what is sent again: the capture lacks what the sender sent
    /// before it, or it was slow.
    pub(super) fn charge_within(&mut self, until: At, stats: &mut Stats) {
        let last_ns = self.last.map_or(until.time_ns, |(_, _, time_ns)| time_ns);
        let since_ns = stats.pace.answered_ns().map_or(last_ns, |answered| answered.max(last_ns));
        let silent = u64::try_from(until.time_ns.saturating_sub(since_ns)).unwrap_or(0);
        if !stats.pace.is_long(silent) {
            return;
        }
        self.charged_ns = self.charged_ns.max(until.time_ns);
        let (trouble, repair, sure) = (Trouble::LossNear, Repair::Timeout, false);
        let (ns, messages) = (silent, self.newly_delayed(self.acked));
        stats.charge(Charge { trouble, repair, sure, ns, messages, shown: until, until });
    }

    /// Charges the delay of what is sent again.
    pub(super) fn charge(
        &mut self,
        resent: &Retransmission,
        (trouble, sure): (Trouble, bool),
        repair: Repair,
        stats: &mut Stats,
    ) {
        let until = resent.at;
        let ns = until.time_ns.saturating_sub(resent.delay.since_ns);
        let ns = u64::try_from(ns).unwrap_or(0);
        self.charged_ns = self.charged_ns.max(until.time_ns);
        let Delay { shown, messages: (messages, to), .. } = resent.delay;
        self.delayed_to = Some(to);
        stats.charge(Charge { trouble, repair, sure, ns, messages, shown, until });
    }
}
