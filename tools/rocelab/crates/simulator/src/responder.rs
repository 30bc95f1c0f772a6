// SPDX-License-Identifier: GPL-2.0-or-later
//! What a responder knows: the PSN that it expects, and what it keeps behind a gap.

use std::collections::BTreeMap;

use crate::packet::Packet;
use crate::psn::add;
use crate::random::Random;

pub(crate) struct Responder {
    pub(crate) start: u32,
    pub(crate) expected: u32,
    pub(crate) msn: u32,
    /// The PSN of the last NAK, until it arrives.
    pub(crate) naked: Option<u32>,
    pub(crate) rnr_psn: Option<u32>,
    pub(crate) rnr_done: BTreeMap<u32, u32>,
    pub(crate) unacknowledged: u32,
    pub(crate) coalesce: u32,
    /// Packets behind a gap, by their distance from the first PSN.
    pub(crate) kept: BTreeMap<u32, Packet>,
}

impl Responder {
    pub(crate) fn new(random: &mut Random, start: u32) -> Self {
        Self {
            start,
            expected: start,
            msn: random.below(2) as u32 * 0xff_fff0,
            naked: None,
            rnr_psn: None,
            rnr_done: BTreeMap::new(),
            unacknowledged: 0,
            coalesce: 1 + random.below(4) as u32,
            kept: BTreeMap::new(),
        }
    }

    pub(crate) fn place(&self, psn: u32) -> u32 {
        add(psn, self.start.wrapping_neg())
    }

    /// The next packet behind a gap, if the gap is closed.
    pub(crate) fn take_kept(&mut self) -> Option<Packet> {
        let at = self.place(self.expected);
        self.kept = self.kept.split_off(&at);
        self.kept.remove(&at)
    }
}
