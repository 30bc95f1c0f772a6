// SPDX-License-Identifier: GPL-2.0-or-later
//! The context in which a direction processes a packet.

use super::efficiency::Efficiency;
use super::message::Message;
use super::verdict::Verdicts;
use crate::finding::{At, Findings, Rule};
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
    /// The PSN of a missing READ response, if the capture has later ones.
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
