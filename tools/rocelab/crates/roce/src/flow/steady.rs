// SPDX-License-Identifier: GPL-2.0-or-later
//! A stretch of packets that differ in PSN, AckReq and content only, counted before it is summed.

use super::message::Efficiency;
use super::stats::Stats;
use crate::bytes;
use crate::opcode::{Class, Header, Opcode};
use crate::packet::{Net, Packet};
use crate::series::Interval;

/// What all packets of the stretch have in common; each is a whole message.
#[derive(Debug)]
pub(super) struct Steady {
    /// The number of packets with these headers.
    alike: u64,
    count: u64,
    payload_len: u32,
    wire_len: u32,
    tclass: u8,
    net: Net,
    pub(super) reliable: bool,
    /// The path MTU that its packets were held against.
    pmtu: u32,
    /// Where a WRITE's RETH has the DMA length, in the frame.
    announced_at: Option<usize>,
}

impl Steady {
    /// Begin behind `packet`, which is summed already and broke no rule.
    pub(super) fn new(packet: &Packet, alike: u64, op: &'static Opcode, pmtu: u32) -> Self {
        let announced = (op.class == Class::Write).then(|| op.offset(Header::Reth)).flatten();
        Self {
            alike,
            count: 0,
            payload_len: packet.payload_len,
            wire_len: packet.wire_len,
            tclass: packet.tclass,
            net: packet.net,
            reliable: op.service().is_reliable(),
            pmtu,
            announced_at: announced.map(|at| usize::from(packet.bth_off) + at + 12),
        }
    }

    /// The packet breaks no rule of a single packet, because the one before it broke none.
    #[inline]
    pub(super) fn admits(&self, alike: u64, apsn: u8, frame: &[u8], pmtu: u32) -> bool {
        self.alike == alike
            && self.pmtu == pmtu
            && apsn & 0x7f == 0
            && self.announced_at.is_none_or(|at| bytes::u32(frame, at) == Some(self.payload_len))
    }

    #[inline]
    pub(super) fn count(&mut self) {
        self.count += 1;
    }

    /// Sum up what was counted; the series must still be in the interval that it was counted in.
    pub(super) fn settle(&mut self, stats: &mut Stats, efficiency: &mut Efficiency) {
        let count = std::mem::take(&mut self.count);
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
