// SPDX-License-Identifier: GPL-2.0-or-later
//! One block on its way: read, then decoded and verified (any thread), then followed (in order).

use roce::icrc::Verifier;
use roce::{Kind, Packet, Ports, decode_into};

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

/// A block and what was found in it; reused from block to block.
#[derive(Default)]
pub(crate) struct Lane {
    pub(crate) block: Block,
    /// RoCE packets and the indexes of their records.
    pub(crate) packets: Vec<(u32, Packet)>,
    pub(crate) times: Option<Times>,
    /// Over all blocks that this lane carried.
    pub(crate) totals: Totals,
    verifier: Verifier,
}

impl Lane {
    pub(crate) fn decode(&mut self, rules: &Rules) {
        let Self { block, packets, times, totals, verifier } = self;
        packets.clear();
        *times = None;
        for (index, record) in (0..).zip(&block.records) {
            note_time(times, record.time_ns);
            totals.packets += 1;
            totals.bytes += u64::from(record.wire_len);
            totals.truncated += u64::from(record.len < record.wire_len);
            // decoded where it stays: a packet is too large to be carried about
            packets.push((index, Packet::default()));
            let Some((_, packet)) = packets.last_mut() else { break };
            let bytes = block.frame(record);
            match decode_into(record.link, bytes, record.wire_len, &rules.ports, packet) {
                Kind::Roce if rules.select.admits(packet, record.time_ns) => {
                    if rules.icrc {
                        packet.icrc = verifier.check(packet, bytes);
                    }
                    totals.roce(packet);
                    continue;
                }
                Kind::Cut => totals.cut += 1,
                Kind::Pfc(classes) => totals.pfc(classes),
                Kind::Pause => totals.pause += 1,
                Kind::Roce | Kind::Other => totals.other += 1,
            }
            packets.pop();
        }
    }
}

#[inline]
fn note_time(times: &mut Option<Times>, time_ns: i64) {
    let Some(times) = times else {
        let (first, last) = (time_ns, time_ns);
        *times = Some(Times { first, last, least: first, greatest: last, backwards: 0 });
        return;
    };
    times.backwards += u64::from(time_ns < times.last);
    times.last = time_ns;
    times.least = times.least.min(time_ns);
    times.greatest = times.greatest.max(time_ns);
}
