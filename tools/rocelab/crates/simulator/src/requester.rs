// SPDX-License-Identifier: GPL-2.0-or-later
//! What a requester knows: its messages, and which of them were acknowledged.

use std::collections::{BTreeSet, VecDeque};

use crate::message::Message;
use crate::psn::{add, diff};
use crate::random::Random;

pub(crate) struct Requester {
    pub(crate) messages: Vec<Message>,
    pub(crate) window: u32,
    pub(crate) ack_every: u32,
    pub(crate) timeout_ns: i64,
    /// Goes back at each implied NAK, not only at the first for a response.
    pub(crate) eager: bool,
    pub(crate) send_psn: u32,
    pub(crate) high_psn: u32,
    pub(crate) acked: u32,
    pub(crate) end: u32,
    pub(crate) blocked_until: i64,
    pub(crate) sending: bool,
    pub(crate) generation: u64,
    /// When the timer began to run, ns since 1970.
    pub(crate) armed_ns: i64,
    /// The response for which it went back.
    pub(crate) implied: Option<u32>,
    /// Single packets to send again, and the number of their [`Resend`].
    pub(crate) again: VecDeque<(u32, usize)>,
    /// The PSN up to which packets were sent again since the last timeout.
    pub(crate) again_to: u32,
    /// What the responder has out of order.
    pub(crate) kept: BTreeSet<u32>,
    /// Responses that came out of order.
    pub(crate) early: BTreeSet<u32>,
    /// Everything before this PSN arrived, but a response to it may be missing.
    pub(crate) covered: Option<u32>,
    pub(crate) resend: Option<usize>,
}

impl Requester {
    pub(crate) fn new(random: &mut Random, messages: usize, mtu: u32, now: i64) -> Self {
        let start = match random.below(3) {
            0 => add(0, (random.below(40) as u32).wrapping_neg()),
            1 => 0,
            _ => random.below(1 << 24) as u32,
        };
        let mut psn = start;
        let messages = (0..messages).map(|_| {
            let message = Message::random(random, psn, mtu);
            psn = message.end();
            message
        });
        let messages = messages.collect();
        let window = 1 + random.below(64) as u32;
        Self {
            messages,
            window,
            ack_every: (1 + random.below(8) as u32).min(window),
            timeout_ns: [200_000, 1_000_000, 4_000_000][random.below(3) as usize],
            eager: random.below(4) == 0,
            send_psn: start,
            high_psn: start,
            acked: start,
            end: psn,
            blocked_until: now,
            sending: false,
            generation: 0,
            armed_ns: now,
            implied: None,
            again: VecDeque::new(),
            again_to: start,
            kept: BTreeSet::new(),
            early: BTreeSet::new(),
            covered: None,
            resend: None,
        }
    }

    /// The first PSN.
    pub(crate) fn start(&self) -> u32 {
        self.acked
    }

    /// All messages are complete.
    pub(crate) fn is_done(&self) -> bool {
        self.acked == self.end
    }

    pub(crate) fn message_at(&self, psn: u32) -> Option<Message> {
        let at = self.messages.partition_point(|message| diff(message.psn, psn) <= 0);
        self.messages.get(at.checked_sub(1)?).copied()
    }

    /// Completes what comes before `psn`; a READ or atomic without its response stops it. Returns
    /// whether anything was completed, and whether it was stopped.
    pub(crate) fn complete(&mut self, psn: u32) -> (bool, bool) {
        let from = self.messages.partition_point(|message| diff(message.psn, self.acked) < 0);
        let stop = self.messages[from.saturating_sub(1)..]
            .iter()
            .take_while(|message| diff(message.psn, psn) < 0)
            .find(|message| message.needs_response() && diff(message.end(), self.acked) > 0);
        let to = match stop {
            Some(stop) if diff(stop.psn, self.acked) > 0 => stop.psn,
            Some(_) => self.acked,
            None => psn,
        };
        let stopped = stop.is_some();
        let advanced = diff(to, self.acked) > 0;
        if advanced {
            self.advance(to);
        }
        (advanced, stopped)
    }

    pub(crate) fn advance(&mut self, to: u32) {
        self.acked = to;
        if diff(self.send_psn, to) < 0 {
            self.send_psn = to;
        }
        self.kept.retain(|&psn| diff(psn, to) >= 0);
        self.again.retain(|&(psn, _)| diff(psn, to) >= 0);
        self.early.retain(|&psn| diff(psn, to) >= 0);
    }
}
