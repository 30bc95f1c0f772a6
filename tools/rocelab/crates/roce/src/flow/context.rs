// SPDX-License-Identifier: GPL-2.0-or-later
use super::message::{Efficiency, Message};
use super::verdict::Verdicts;
use crate::finding::{At, Findings, Rule};
use crate::packet::Net;

/// Where a direction's state puts what it learns, and what it may know of the other direction.
pub(super) struct Context<'a> {
    pub(super) findings: &'a mut Findings,
    pub(super) messages: &'a mut Vec<Message>,
    pub(super) keep_messages: bool,
    pub(super) efficiency: &'a mut Efficiency,
    pub(super) verdicts: &'a mut Verdicts,
    pub(super) connection: u32,
    pub(super) from_a: bool,
    pub(super) net: Net,
    /// The other side's packets are in the capture.
    pub(super) visible: bool,
    /// The PSN of the READ response that the capture lacks, though it has later ones.
    pub(super) response_gap: Option<u32>,
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
}
