// SPDX-License-Identifier: GPL-2.0-or-later
//! Requests that came to nothing: refused, or repeated until the sender gave up.

use super::Requests;
use crate::finding::{At, Rule};
use crate::flow::context::Context;
use crate::flow::message::Withdrawn;
use crate::flow::psn;
use crate::flow::stats::Stats;

/// Retransmissions of one PSN after which a sender seems to give up, if nothing follows.
const MIN_RETRANSMISSIONS: u64 = 2;

/// [`super::Outstanding::bytes`] of what is no message of data, or not whole.
pub(super) const NO_MESSAGE: u32 = u32::MAX;

/// The oldest unacknowledged PSN, which is sent again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stuck {
    psn: u32,
    retransmissions: u64,
    /// The last of them.
    at: At,
}

/// Payloads of packets: the largest, the PSN of the first one, and the largest before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    largest: u32,
    psn: u32,
    before: u32,
}

impl Sizes {
    #[inline]
    pub(super) fn note(&mut self, bytes: u32, at_psn: u32) {
        if bytes > self.largest {
            *self = Self { largest: bytes, psn: at_psn, before: self.largest };
        }
    }
}

impl Requests {
    /// Notes that the sender went back to a PSN.
    pub(super) fn note_again(&mut self, first: u32, at: At) {
        if first != self.acked {
            return;
        }
        let before = self.stuck.filter(|stuck| stuck.psn == first);
        let retransmissions = before.map_or(0, |stuck| stuck.retransmissions) + 1;
        self.stuck = Some(Stuck { psn: first, retransmissions, at });
    }

    /// Notes a NAK that refuses a request for good.
    pub(in crate::flow) fn refuse(&mut self, at_psn: u32) {
        if self.started {
            self.refused.get_or_insert(at_psn);
        }
    }

    /// Takes what was refused or given up out of the goodput, and tells that a sender gave up.
    pub(super) fn finish_stuck(&mut self, stats: &mut Stats, context: &mut Context<'_>) {
        let open = |at_psn: u32| !psn::before(at_psn, self.acked);
        let stuck = self
            .stuck
            .filter(|one| one.psn == self.acked && one.retransmissions >= MIN_RETRANSMISSIONS);
        let refused = self.refused.filter(|&refused| open(refused));
        let Some(head) = refused.or(stuck.map(|stuck| stuck.psn)) else { return };
        for one in self.outstanding.iter().filter(|one| one.bytes != NO_MESSAGE) {
            if !psn::before(one.key, head) {
                stats.messages = stats.messages.saturating_sub(1);
                stats.goodput_bytes = stats.goodput_bytes.saturating_sub(one.bytes.into());
                if context.keep_messages {
                    let connection = context.connection;
                    context.withdrawn.push(Withdrawn { connection, at: one.at, bytes: one.bytes });
                }
            }
        }
        let Some(stuck) = stuck.filter(|_| refused.is_none()) else { return };
        let not_ready = self.rnr.is_some();
        let Sizes { largest, psn: of, before } = self.sizes;
        let (confirmed, visible) = (self.confirmed, context.visible);
        context.find(Rule::RetryExceeded, stuck.at, !not_ready, || {
            let (psn, tries) = (stuck.psn, stuck.retransmissions + 1);
            let why = if not_ready {
                "each was answered by an RNR NAK: the receiver posts no buffer".to_owned()
            } else if confirmed && before > 0 && open(of) {
                format!(
                    "packets of up to {before} bytes were acknowledged, those of {largest} never: a link on \
                     the way has a smaller MTU (a black hole), or the receiver has failed"
                )
            } else if visible {
                "no answer is in the capture, and the peer answered before: it has failed, or the path has"
                    .to_owned()
            } else {
                "no answer is in the capture: not captured, or never given".to_owned()
            };
            format!("PSN {psn} was sent {tries} times and the sender gave up, or the capture ends: {why}")
        });
    }
}
