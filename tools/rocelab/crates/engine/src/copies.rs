// SPDX-License-Identifier: GPL-2.0-or-later
//! Recognises the second copy of a packet that a mirrored port, or a second tap, has put into a capture.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use roce::Packet;

/// The longest time between a packet and its copy, ns: less than any sender's timer.
const APART_NS: i64 = 50_000;
/// Packets that are remembered: what a 400 Gbit/s link carries in that time.
const SLOTS: usize = 1 << 13;

/// The packets of the last microseconds.
pub(crate) struct Copies {
    // keyless: whichever packets share a slot, they do so in every run
    state: BuildHasherDefault<DefaultHasher>,
    /// Hash and time of a packet whose copy has not come.
    slots: Vec<(u64, i64)>,
    /// Copies so far.
    pub(crate) count: u64,
}

impl Default for Copies {
    fn default() -> Self {
        Self { state: BuildHasherDefault::default(), slots: vec![(0, i64::MIN); SLOTS], count: 0 }
    }
}

impl Copies {
    /// Whether this is the copy of a packet shortly before it. A copy is counted once: a third packet
    /// is a new one.
    pub(crate) fn is_copy(&mut self, packet: &Packet, icrc: u32, time_ns: i64) -> bool {
        let Packet { src, dst, dqpn, psn, opcode, .. } = *packet;
        let hash = self.state.hash_one((src, dst, dqpn, psn, opcode, icrc));
        let slot = &mut self.slots[hash as usize % SLOTS];
        let copy = slot.0 == hash && time_ns.saturating_sub(slot.1) < APART_NS;
        *slot = if copy { (0, i64::MIN) } else { (hash, time_ns) };
        self.count += u64::from(copy);
        copy
    }
}
