// SPDX-License-Identifier: GPL-2.0-or-later
//! One block on its way: read, then decoded and verified (any thread), then followed (in order).

use roce::icrc::Verifier;
use roce::{Icrc, Kind, Memory, Packet, Ports, decode_into};

use crate::read::Block;
use crate::select::Select;
use crate::totals::Totals;

/// What decoding needs to know; the same for all blocks.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) ports: Ports,
    pub(crate) icrc: bool,
    pub(crate) select: Select,
}

/// Times of all records of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) least: i64,
    pub(crate) greatest: i64,
    /// Records before whose predecessor's time they lie.
    pub(crate) backwards: u64,
}

/// A RoCE packet: what it shares with others of its block, and what is its own.
#[derive(Clone, Copy)]
pub(crate) struct Item {
    /// Index of its record.
    pub(crate) record: u32,
    /// Index of a packet that may differ from it in what follows.
    pub(crate) packet: u32,
    pub(crate) psn: u32,
    pub(crate) apsn: u8,
    pub(crate) icrc: Icrc,
}

/// A block and what was found in it; reused from block to block.
#[derive(Default)]
pub(crate) struct Lane {
    pub(crate) block: Block,
    /// RoCE packets in their order.
    pub(crate) items: Vec<Item>,
    /// What [`Item::packet`] names, and how often.
    pub(crate) packets: Vec<(Packet, u64)>,
    pub(crate) times: Option<Times>,
    /// Over all blocks that this lane carried.
    pub(crate) totals: Totals,
    verifier: Verifier,
    memory: Memory,
}

impl Lane {
    pub(crate) fn decode(&mut self, rules: &Rules) {
        let Self { block, items, packets, times, totals, verifier, memory } = self;
        items.clear();
        packets.clear();
        memory.forget();
        *times = None;
        let Some(first) = block.records.first() else { return };
        let mut span = Times::new(first.time_ns);
        totals.packets += block.records.len() as u64;
        for (record_index, record) in (0..).zip(&block.records) {
            span.note(record.time_ns);
            totals.bytes += u64::from(record.wire_len);
            totals.truncated += u64::from(record.len < record.wire_len);
            let bytes = block.frame(record);
            let known = memory.recall(record.link, bytes, record.wire_len);
            let index = match known {
                Some(index) => index,
                None => {
                    // decoded where it stays: a packet is too large to be carried about
                    packets.push((Packet::default(), 0));
                    let Some((packet, _)) = packets.last_mut() else { break };
                    match decode_into(record.link, bytes, record.wire_len, &rules.ports, packet) {
                        Kind::Roce => {}
                        kind => {
                            packets.pop();
                            totals.no_roce(kind);
                            continue;
                        }
                    }
                    packets.len() as u32 - 1
                }
            };
            let Some((packet, count)) = packets.get_mut(index as usize) else { break };
            if known.is_none() {
                memory.keep(record.link, bytes, packet, index);
            }
            if !rules.select.admits(packet, record.time_ns) {
                totals.other += 1;
                continue;
            }
            let icrc = if rules.icrc { verifier.check(packet, bytes) } else { Icrc::Unchecked };
            let (apsn, psn) = match known {
                Some(_) => Memory::own(bytes).unwrap_or_default(),
                None => (packet.apsn, packet.psn),
            };
            if known.is_none() {
                packet.icrc = icrc;
            }
            if icrc == packet.icrc {
                *count += 1;
            } else {
                totals.roce(&Packet { icrc, ..*packet }, 1);
            }
            items.push(Item { record: record_index, packet: index, psn, apsn, icrc });
        }
        *times = Some(span);
        for (packet, count) in packets {
            totals.roce(packet, *count);
        }
    }
}

impl Times {
    const fn new(time_ns: i64) -> Self {
        Self { first: time_ns, last: time_ns, least: time_ns, greatest: time_ns, backwards: 0 }
    }

    #[inline]
    fn note(&mut self, time_ns: i64) {
        self.backwards += u64::from(time_ns < self.last);
        self.last = time_ns;
        self.least = self.least.min(time_ns);
        self.greatest = self.greatest.max(time_ns);
    }
}
