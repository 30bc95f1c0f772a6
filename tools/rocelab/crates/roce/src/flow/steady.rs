// SPDX-License-Identifier: GPL-2.0-or-later
//! Stretches of packets that differ in PSN, AckReq and content only, counted before it is summed.

use super::message::Efficiency;
use super::stats::Stats;
use crate::packet::{Net, Packet};
use crate::series::Interval;

/// Packets of one number, see [`super::Tracker::packet`], with PSNs that follow one another.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// Their number.
    pub alike: u64,
    /// The first PSN.
    pub psn: u32,
    /// How many they are.
    pub count: usize,
    /// None has a time before that of the one before it.
    pub in_time: bool,
}

/// What all packets of the stretch have in common; each is a whole message.
#[derive(Debug)]
pub(super) struct Steady {
    /// The number of packets with these headers.
    pub(super) alike: u64,
    pub(super) count: u64,
    payload_len: u32,
    wire_len: u32,
    tclass: u8,
    net: Net,
    pub(super) reliable: bool,
    /// The path MTU that its packets were held against.
    pub(super) pmtu: u32,
}

impl Steady {
    /// Begin behind `packet`, which is summed already and broke no rule: then those that are alike
    /// break no rule of single packets.
    pub(super) fn new(packet: &Packet, alike: u64, reliable: bool, pmtu: u32) -> Self {
        let &Packet { payload_len, wire_len, tclass, net, .. } = packet;
        Self { alike, count: 0, payload_len, wire_len, tclass, net, reliable, pmtu }
    }

    /// Sum up what was counted; the series must still be in the interval that it was counted in.
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
