// SPDX-License-Identifier: GPL-2.0-or-later
//! One block on its way: read, then decoded and verified (any thread), then followed (in order).

use roce::icrc::Verifier;
use roce::{Icrc, Kind, Memory, Own, Packet, Ports, decode_into, icrc};

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
    pub(crate) own: Own,
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
    /// Message bytes of all items.
    pub(crate) payload_bytes: u64,
    /// Over all blocks that this lane carried.
    pub(crate) totals: Totals,
    verifier: Verifier,
    memory: Memory,
}

impl Lane {
    pub(crate) fn decode(&mut self, rules: &Rules) {
        self.items.clear();
        self.packets.clear();
        self.memory.forget();
        self.times = None;
        let Some(first) = self.block.records.first() else { return };
        let mut span = Times::new(first.time_ns);
        let (mut bytes, mut truncated) = (0, 0);
        // apart from the rest, which needs all registers
        for record in &self.block.records {
            span.note(record.time_ns);
            bytes += u64::from(record.wire_len);
            truncated += u64::from(record.len < record.wire_len);
        }
        let Self { block, items, packets, times, payload_bytes, totals, verifier, memory } = self;
        *times = Some(span);
        *payload_bytes = 0;
        totals.packets += block.records.len() as u64;
        totals.bytes += bytes;
        totals.truncated += truncated;
        let all = rules.select.admits_all();
        for (record_index, record) in (0..).zip(&block.records) {
            let frame = block.frame(record);
            let (index, own, icrc) = match memory.recall(record.link, frame, record.wire_len) {
                Some(known) => {
                    let (own, icrc) = known.look(frame, rules.icrc);
                    (known.index, own, icrc)
                }
                None => {
                    let index = packets.len() as u32;
                    // decoded where it stays: a packet is too large to be carried about
                    packets.push((Packet::default(), 0));
                    let Some((packet, _)) = packets.last_mut() else { break };
                    let (link, wire_len) = (record.link, record.wire_len);
                    let kind = decode_into(link, frame, wire_len, &rules.ports, packet);
                    if kind != Kind::Roce {
                        packets.pop();
                        totals.no_roce(kind);
                        continue;
                    }
                    memory.keep(link, frame, packet, index);
                    if rules.icrc {
                        packet.icrc = verifier.check(packet, frame);
                    }
                    let found = icrc::found(packet, frame).unwrap_or(0);
                    let own = Own { psn: packet.psn, apsn: packet.apsn, icrc: found };
                    (index, own, packet.icrc)
                }
            };
            let Some((packet, count)) = packets.get_mut(index as usize) else { break };
            if !all && !rules.select.admits(packet, record.time_ns) {
                totals.other += 1;
                continue;
            }
            if icrc == packet.icrc {
                *count += 1;
            } else {
                *payload_bytes += u64::from(packet.payload_len);
                totals.roce(&Packet { icrc, ..*packet }, 1);
            }
            items.push(Item { record: record_index, packet: index, own, icrc });
        }
        for (packet, count) in packets {
            *payload_bytes += u64::from(packet.payload_len) * *count;
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
