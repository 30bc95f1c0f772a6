// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs: packets that differ only in PSN, AckReq and content, counted first and summed once.

use super::efficiency::Efficiency;
use super::stats::Stats;
use crate::packet::{Net, Packet};
use crate::series::Interval;

/// Packets with the same header number (see [`super::Tracker::packet`]) and consecutive PSNs.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Their header number.
    pub headers: u64,
    /// The first PSN.
    pub psn: u32,
    /// How many packets.
    pub count: usize,
    /// Whether their times never decrease.
    pub in_time: bool,
}

/// Sums of a run that are not yet in the statistics; each packet is a whole message.
#[derive(Clone, Debug)]
pub(super) struct RunSums {
    /// The header number of the packets.
    pub(super) headers: u64,
    pub(super) count: u64,
    pub(super) payload_len: u32,
    wire_len: u32,
    tclass: u8,
    net: Net,
    pub(super) reliable: bool,
    /// The path MTU that the packets were checked against.
    pub(super) pmtu: u32,
}

impl RunSums {
    /// Starts after `packet`, which is already summed and broke no rule of single packets. Packets
    /// with the same headers break none either.
    pub(super) fn new(packet: &Packet, headers: u64, reliable: bool, pmtu: u32) -> Self {
        let &Packet { payload_len, wire_len, tclass, net, .. } = packet;
        Self { headers, count: 0, payload_len, wire_len, tclass, net, reliable, pmtu }
    }

    /// Adds the counted packets to the statistics. The series must still be in the interval in which
    /// they were counted.
    pub(super) fn settle(self, stats: &mut Stats, efficiency: &mut Efficiency) {
        let count = self.count;
        let (wire_len, payload_len) = (u64::from(self.wire_len), u64::from(self.payload_len));
        stats.packets += count;
        stats.wire_bytes += count * wire_len;
        stats.payload_bytes += count * payload_len;
        stats.ecn[usize::from(self.tclass & 3)] += count;
        stats.messages += count;
        stats.goodput_bytes += count * payload_len;
        stats.series.add_to_current(Interval {
            packets: u32::try_from(count).unwrap_or(u32::MAX),
            retransmitted: 0,
            payload_bytes: count * payload_len,
        });
        efficiency.add_single(self.net, payload_len, wire_len, count);
    }
}
