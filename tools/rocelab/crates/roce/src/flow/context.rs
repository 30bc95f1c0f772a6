// SPDX-License-Identifier: GPL-2.0-or-later
//! The context in which a direction processes a packet.

use super::efficiency::Efficiency;
use super::evidence::Evidence;
use super::message::Message;
use super::verdict::Verdicts;
use crate::finding::{At, Findings, Lost, Repeated, Rule};
use crate::packet::Net;

/// Outputs of a direction, and facts about the other direction.
pub(super) struct Context<'a> {
    pub(super) findings: &'a mut Findings,
    pub(super) messages: &'a mut Vec<Message>,
    pub(super) keep_messages: bool,
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
    /// Clocks of files, and other evidence about the capture as a whole.
    pub(super) evidence: &'a mut Evidence,
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
