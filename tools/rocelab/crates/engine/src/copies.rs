// SPDX-License-Identifier: GPL-2.0-or-later
//! Recognises the further looks at a packet that several interfaces, a mirrored port, or a second tap have put
//! into a capture.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use roce::{Link, Packet};

use crate::read::Record;

/// The longest time between a packet and its copy, ns: less than any sender's timer.
const APART_NS: i64 = 50_000;
/// Packets that are remembered: what a 400 Gbit/s link carries in that time.
const SLOTS: usize = 1 << 13;
/// Slots that a packet may take: bursts of packets that wait for their copies do not displace each other.
const WAYS: usize = 4;
/// Looks at one packet that are told from a retransmission.
const LOOKS: usize = 8;
const SLL2_INTERFACE: usize = 4;
const SLL2_TYPE: usize = 10;
const OUTGOING: u8 = 4;

/// Where a packet was seen: file, number of the interface, and whether it was outgoing.
pub(crate) type Place = u64;

/// The interface that saw a frame, if its capture names it.
#[inline]
fn interface(record: &Record, frame: &[u8]) -> Option<(u32, bool)> {
    if record.link == Link::LinuxSll2 {
        let number = frame.get(SLL2_INTERFACE..)?.first_chunk()?;
        return Some((u32::from_be_bytes(*number), frame.get(SLL2_TYPE) == Some(&OUTGOING)));
    }
    (record.interface > 0).then_some((record.interface, false))
}

/// Where a frame was seen.
pub(crate) fn place(record: &Record, frame: &[u8]) -> Place {
    let (number, outgoing) = interface(record, frame).unwrap_or_default();
    u64::from(record.file) << 48 | u64::from(number) << 1 | u64::from(outgoing)
}

/// A packet of the last microseconds.
#[derive(Clone, Copy)]
struct Slot {
    hash: u64,
    first_ns: i64,
    looks: [Place; LOOKS],
    count: usize,
}

/// The packets of the last microseconds.
pub(crate) struct Copies {
    // keyless: whichever packets share a slot, they do so in every run
    state: BuildHasherDefault<DefaultHasher>,
    /// Empty until the first packet.
    slots: Vec<Slot>,
    /// How often an interface sees each packet of a segment, or all files if there is none; others see it once.
    looks: BTreeMap<u64, usize>,
    /// Copies by other interfaces so far.
    pub(crate) of_interfaces: u64,
    /// Other copies so far.
    pub(crate) of_mirrors: u64,
}

impl Copies {
    /// `looks`: segments of which an interface, or all files without one, see each packet so often.
    pub(crate) fn new(looks: &[(u64, u32)]) -> Self {
        Self {
            state: BuildHasherDefault::default(),
            slots: Vec::new(),
            looks: looks.iter().map(|&(segment, count)| (segment, count as usize)).collect(),
            of_interfaces: 0,
            of_mirrors: 0,
        }
    }

    /// Whether packets like those of this record may have copies, and must all be shown to [`Self::is_copy`].
    #[inline]
    pub(crate) fn concern(&self, record: &Record) -> bool {
        record.interface > 0 || record.link == Link::LinuxSll2 || !self.looks.is_empty()
    }

    /// Whether this is a further look at a packet shortly before it. Where it was seen as often as all packets
    /// are, it was sent again.
    pub(crate) fn is_copy(
        &mut self,
        packet: &Packet,
        icrc: u32,
        record: &Record,
        frame: &[u8],
    ) -> bool {
        if self.slots.is_empty() {
            let empty = Slot { hash: 0, first_ns: i64::MIN, looks: [0; LOOKS], count: 0 };
            self.slots = vec![empty; SLOTS];
        }
        let &Packet { src, dst, dqpn, psn, opcode, .. } = packet;
        let segment = packet.segment.number();
        let interface = interface(record, frame);
        // interfaces see one packet with a tag or in a tunnel, and without; one interface sees two packets
        let apart = interface.map_or(segment, |_| 0);
        let hash = self.state.hash_one((src, dst, dqpn, psn, opcode, icrc, apart));
        let place = place(record, frame);
        let close = |slot: &Slot| record.time_ns.saturating_sub(slot.first_ns) < APART_NS;
        let set = hash as usize % (SLOTS / WAYS) * WAYS;
        let Some(ways) = self.slots.get_mut(set..set + WAYS) else { return false };
        let known = ways.iter().position(|slot| slot.hash == hash && close(slot));
        let oldest = || (0..WAYS).min_by_key(|&way| ways.get(way).map(|slot| slot.first_ns));
        let way = known.or_else(oldest).unwrap_or_default();
        let Some(slot) = ways.get_mut(way) else { return false };
        let looks = slot.looks.get(..slot.count).unwrap_or_default();
        let here = looks.iter().filter(|look| **look == place).count();
        let seen = if interface.is_some() { here } else { slot.count };
        let most = self.looks.get(&segment).copied().unwrap_or(1);
        if known.is_none() || seen >= most {
            *slot = Slot { hash, first_ns: record.time_ns, looks: slot.looks, count: 1 };
            slot.looks[0] = place;
            return false;
        }
        if let Some(look) = slot.looks.get_mut(slot.count) {
            *look = place;
            slot.count += 1;
        }
        match here {
            0 if interface.is_some() => self.of_interfaces += 1,
            _ => self.of_mirrors += 1,
        }
        true
    }
}
