// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads what the next packets need of their directions before it takes any of them: of thousands of
//! directions most are in no cache, and memory is fetched for many at once as fast as for one.

use std::hint::black_box;

use super::direction::Flow;
use super::flow_key::{CONNECTED, Key};
use super::tracker::{Tracker, place};
use crate::opcode::Class;
use crate::packet::Packet;

/// Directions that are looked at together.
pub const TOGETHER: usize = 16;
/// With fewer directions, all are in a cache.
const MANY: usize = 1024;

impl Flow {
    fn look_at_requests(&self) -> u64 {
        self.good
            ^ u64::from(self.constant.reserved.count > 0)
            ^ self.stats.look()
            ^ self.requests.look()
    }

    fn look_at_responses(&self) -> u64 {
        self.good
            ^ u64::from(self.constant.reserved.count > 0)
            ^ self.stats.look()
            ^ self.responses.look()
    }

    fn look_at_peer((peer, acks): (&Self, bool)) -> u64 {
        // of the receiver a request needs only the path MTU
        if acks { peer.stats.look() ^ peer.requests.look() } else { peer.stats.pmtu.into() }
    }

    fn look_behind(&self) -> u64 {
        self.stats.series.look() ^ self.stats.latency.look() ^ self.requests.look_behind()
    }
}

impl Tracker {
    /// Looks at the directions of up to [`TOGETHER`] packets, which [`Self::packet`] takes next. It changes
    /// nothing in the results.
    #[inline]
    pub fn look_ahead<'a>(&mut self, packets: impl Iterator<Item = &'a Packet>) {
        if self.table.len() >= MANY {
            self.look(packets);
        }
    }

    fn look<'a>(&mut self, packets: impl Iterator<Item = &'a Packet>) {
        let mut slots = [(None, false); TOGETHER];
        for (to, packet) in slots.iter_mut().zip(packets) {
            let &Packet { src, dst, dqpn, .. } = packet;
            let key = Key { src, dst, dqpn, sqpn: CONNECTED, segment: packet.segment.number() };
            let slot = self.table.get(&key).copied();
            if let Some(slot) = slot {
                self.recent[place(&key)] = Some((key, slot));
            }
            *to = (slot, packet.op().is_some_and(|op| op.class == Class::Acknowledge));
        }
        let flow = |slot: u32| self.flows.get(slot as usize).and_then(Option::as_deref);
        let mut sum = 0;
        let peers = slots.map(|(slot, acks)| {
            let one = slot.and_then(flow)?;
            sum ^= if acks { one.look_at_responses() } else { one.look_at_requests() };
            one.peer.map(|peer| (peer, acks))
        });
        for peer in peers {
            sum ^= peer
                .and_then(|(peer, acks)| Some((flow(peer)?, acks)))
                .map_or(0, Flow::look_at_peer);
        }
        for (slot, _) in slots {
            sum ^= slot.and_then(flow).map_or(0, Flow::look_behind);
        }
        for peer in peers {
            let acknowledged = peer.filter(|(_, acks)| *acks);
            sum ^= acknowledged.and_then(|(peer, _)| flow(peer)).map_or(0, Flow::look_behind);
        }
        // else nothing would be read
        black_box(sum);
    }
}
