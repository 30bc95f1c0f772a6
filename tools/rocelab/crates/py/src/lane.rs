// SPDX-License-Identifier: GPL-2.0-or-later
//! One block on its way: read, then decoded and verified (any thread), then followed (in order).

use roce::icrc::Verifier;
use roce::{Icrc, Kind, Memory, Own, Packet, Ports, Recalled, decode_into};

use crate::read::{Block, Record};
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

/// RoCE packets of records that follow one another: one, or some that differ in content only, with
/// PSNs that follow one another and no wrong ICRC.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// Index of the first one's record.
    pub(crate) from: u32,
    pub(crate) count: u32,
    /// Index of a packet that may differ from them in [`Own`].
    pub(crate) packet: u32,
    /// The first one's.
    pub(crate) own: Own,
    pub(crate) icrc: Icrc,
}

/// A block and what was found in it; reused from block to block.
#[derive(Default)]
pub(crate) struct Lane {
    pub(crate) block: Block,
    /// RoCE packets in their order.
    pub(crate) runs: Vec<Run>,
    /// What [`Run::packet`] names, and how often.
    pub(crate) packets: Vec<(Packet, u64)>,
    pub(crate) times: Option<Times>,
    /// RoCE packets in all, and their message bytes.
    pub(crate) count: u32,
    pub(crate) payload_bytes: u64,
    /// Over all blocks that this lane carried.
    pub(crate) totals: Totals,
    verifier: Verifier,
    memory: Memory,
}

impl Lane {
    pub(crate) fn decode(&mut self, rules: &Rules) {
        self.runs.clear();
        self.packets.clear();
        self.memory.forget();
        self.count = 0;
        self.payload_bytes = 0;
        self.times = Times::of(&self.block.records);
        let mut from = 0;
        while let Some(&Record { len, wire_len, .. }) = self.block.records.get(from) {
            let count = self.take(from, rules);
            from += count;
            self.totals.packets += count as u64;
            self.totals.bytes += count as u64 * u64::from(wire_len);
            self.totals.truncated += if len < wire_len { count as u64 } else { 0 };
        }
        for (packet, count) in &self.packets {
            self.totals.roce(packet, *count);
        }
    }

    /// Take a frame, and those behind it that go on like it; says how many.
    #[inline]
    fn take(&mut self, from: usize, rules: &Rules) -> usize {
        let Self { block, runs, packets, totals, verifier, memory, .. } = self;
        let Some((record, others)) = block.records.get(from..).and_then(<[_]>::split_first) else {
            return 0;
        };
        let frame = block.frame(record);
        let recalled = match memory.recall(record.link, frame, record.wire_len, rules.icrc) {
            Some(recalled) => recalled,
            None => match decode(record, frame, rules, packets, memory, verifier) {
                Ok(decoded) => decoded,
                Err(kind) => {
                    totals.no_roce(kind);
                    return 1;
                }
            },
        };
        let Recalled { index, own, icrc } = recalled;
        let Some((packet, alike)) = packets.get_mut(index as usize) else { return 1 };
        let all = rules.select.admits_all();
        if !all && !rules.select.admits(packet, record.time_ns) {
            totals.other += 1;
            return 1;
        }
        let mut count = 1;
        // of packets that take turns most differ in length
        let same_length = others
            .first()
            .is_some_and(|next| (next.len, next.wire_len) == (record.len, record.wire_len));
        if same_length && all && icrc != Icrc::Bad {
            let frames =
                others.iter().map(|record| (record.link, block.frame(record), record.wire_len));
            count += memory.run(recalled, frames, rules.icrc);
        }
        if icrc == packet.icrc {
            *alike += count as u64;
        } else {
            totals.roce(&Packet { icrc, ..*packet }, count as u64);
        }
        runs.push(Run { from: from as u32, count: count as u32, packet: index, own, icrc });
        self.count += count as u32;
        self.payload_bytes += u64::from(packet.payload_len) * count as u64;
        count
    }

    pub(crate) fn records(&self, run: &Run) -> &[Record] {
        let from = run.from as usize;
        self.block.records.get(from..from + run.count as usize).unwrap_or_default()
    }
}

/// Decode a frame that is like none before it.
#[inline(never)]
fn decode(
    record: &Record,
    frame: &[u8],
    rules: &Rules,
    packets: &mut Vec<(Packet, u64)>,
    memory: &mut Memory,
    verifier: &mut Verifier,
) -> Result<Recalled, Kind> {
    let index = packets.len() as u32;
    // decoded where it stays: a packet is too large to be carried about
    packets.push((Packet::default(), 0));
    let Some((packet, _)) = packets.last_mut() else { return Err(Kind::Other) };
    let kind = decode_into(record.link, frame, record.wire_len, &rules.ports, packet);
    if kind != Kind::Roce {
        packets.pop();
        return Err(kind);
    }
    memory.keep(record.link, frame, packet, index);
    if rules.icrc {
        packet.icrc = verifier.check(packet, frame);
    }
    Ok(Recalled { index, own: Own::of(packet, frame), icrc: packet.icrc })
}

impl Times {
    fn of(records: &[Record]) -> Option<Self> {
        let (first, last) = (records.first()?.time_ns, records.last()?.time_ns);
        let pairs = records.iter().zip(records.iter().skip(1));
        let backwards = pairs.map(|(one, next)| u64::from(next.time_ns < one.time_ns)).sum();
        let mut times = Self { first, last, least: first, greatest: last, backwards };
        if backwards > 0 {
            for Record { time_ns, .. } in records {
                times.least = times.least.min(*time_ns);
                times.greatest = times.greatest.max(*time_ns);
            }
        }
        Some(times)
    }
}
