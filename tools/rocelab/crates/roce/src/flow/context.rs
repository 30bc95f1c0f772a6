// SPDX-License-Identifier: GPL-2.0-or-later
//! The context in which a direction processes a packet.

use std::collections::VecDeque;

use super::costs::{Charge, Repair, Trouble};
use super::efficiency::Efficiency;
use super::evidence::Evidence;
use super::message::{Message, Withdrawn};
use super::stats::Stats;
use super::verdict::Verdicts;
use crate::finding::{At, Findings, Lost, Repeated, Rule};
use crate::packet::Net;

/// Outputs of a direction, and facts about the other direction.
pub(super) struct Context<'a> {
    pub(super) findings: &'a mut Findings,
    pub(super) messages: &'a mut Vec<Message>,
    pub(super) keep_messages: bool,
    /// Messages that were complete and came to nothing, if messages are kept.
    pub(super) withdrawn: &'a mut Vec<Withdrawn>,
    pub(super) efficiency: &'a mut Efficiency,
    pub(super) verdicts: &'a mut Verdicts,
    pub(super) connection: u32,
    pub(super) from_a: bool,
    pub(super) net: Net,
    /// Whether the capture has packets of the other side.
    pub(super) visible: bool,
    /// What the capture has of the responses to a reissued READ.
    pub(super) answer: Answer,
    /// [`crate::Segment::number`] of the direction.
    pub(super) segment: u64,
    /// Times in which flow control paused the link.
    pub(super) pauses: &'a VecDeque<PauseTime>,
    /// Clocks of files, and other evidence about the capture as a whole.
    pub(super) evidence: &'a mut Evidence,
}

/// A time for which a sender of flow control asked for silence, ns since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct PauseTime {
    /// The sender and the class.
    pub(super) key: u64,
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
}

/// What the capture has of the response with some PSN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Answer {
    /// Not captured.
    #[default]
    None,
    /// Not captured, but later ones were.
    Missing,
    /// Captured.
    Captured,
}

impl Context<'_> {
    pub(super) fn find(
        &mut self,
        rule: Rule,
        at: At,
        ambiguous: bool,
        detail: impl FnOnce() -> String,
    ) {
        self.findings.add(rule, at, Some(self.connection), ambiguous, detail);
    }

    /// Adds a finding of a loss.
    pub(super) fn find_loss(
        &mut self,
        lost: Lost,
        at: At,
        ambiguous: bool,
        detail: impl FnOnce() -> String,
    ) {
        self.findings.add_loss(lost, at, Some(self.connection), ambiguous, detail);
    }

    /// Charges a late answer, unless flow control is the reason.
    #[cold]
    pub(super) fn late(&self, ns: u64, until: At, stats: &mut Stats) {
        let trouble = if self.is_paused(ns, until) { Trouble::Paused } else { Trouble::Late };
        Self::silence(trouble, ns, until, stats);
    }

    /// Takes a long time in which nothing was outstanding: flow control may be the reason.
    #[cold]
    pub(super) fn idle(&self, ns: u64, until: At, stats: &mut Stats) {
        if self.is_paused(ns, until) {
            Self::silence(Trouble::Paused, ns, until, stats);
        } else {
            stats.pace.note_long_idle(ns, until);
        }
    }

    fn silence(trouble: Trouble, ns: u64, until: At, stats: &mut Stats) {
        let (repair, shown, sure) = (Repair::None, until, trouble == Trouble::Paused);
        stats.charge(Charge { trouble, repair, sure, ns, messages: 1, shown, until });
    }

    /// Whether flow control paused the link for more than half of a silence.
    fn is_paused(&self, ns: u64, until: At) -> bool {
        let to_ns = until.time_ns;
        let from_ns = to_ns.saturating_sub(i64::try_from(ns).unwrap_or(i64::MAX));
        let within = |pause: &PauseTime| {
            pause.to_ns.min(to_ns).saturating_sub(pause.from_ns.max(from_ns)).max(0)
        };
        let paused = self.pauses.iter().map(within).fold(0, i64::saturating_add);
        paused > to_ns.saturating_sub(from_ns) / 2
    }

    /// Adds one finding for all occurrences.
    pub(super) fn find_repeated(
        &mut self,
        rule: Rule,
        repeated: Repeated,
        ambiguous: bool,
        detail: impl FnOnce() -> String,
    ) {
        self.findings.add_repeated(rule, repeated, Some(self.connection), ambiguous, detail);
    }
}
