// SPDX-License-Identifier: GPL-2.0-or-later
//! A requester and a responder on a wire that loses packets, with a tap in its middle.
//!
//! ```text
//! requester ----- near ----- tap ----- far ----- responder
//! ```
//!
//! The rules are those of IBA volume 1, 9.7: Go-Back-N with one NAK for each sequence error, RNR NAKs,
//! implied NAKs of READs and atomics, duplicates answered again, coalesced ACKs. What a rule leaves to
//! the implementation is drawn from the seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::frame::{Host, Transport, ethernet, opcode};
use crate::packet::Packet;
use crate::plan::{Plan, Recovery};
use crate::psn::diff;
use crate::random::Random;
use crate::requester::Requester;
use crate::responder::Responder;
use crate::trace::{Fate, Mishap, Seen, Side, Trace};

/// Time of one packet on the wire, from an end to the tap, and by which a path is longer than the next.
const PACKET_NS: i64 = 300;
const HOP_NS: i64 = 1500;
const PATH_NS: u64 = 2000;
const START_NS: i64 = 1_700_000_000_000_000_000;
/// The two requesters of a connection use different times: even and odd numbers.
const TICK_NS: i64 = 2;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A packet is at the tap, from the requester or not.
    Tap(bool, Vec<u8>, Packet),
    /// A packet is at its destination.
    Arrive(bool, Packet),
    /// The requester may send.
    Send,
    /// The requester's timer, valid for this generation.
    Timer(u64),
}

/// One requester and its responder.
pub(crate) struct Simulation {
    pub(crate) random: Random,
    pub(crate) plan: Plan,
    pub(crate) trace: Trace,
    pub(crate) now: i64,
    pub(crate) mtu: u32,
    pub(crate) requester: Requester,
    pub(crate) responder: Responder,
    /// The requester is at the first host.
    pub(crate) from_first: bool,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    count: u64,
    /// When the wire of each end is free.
    free: [i64; 2],
    sent: [u64; 2],
    /// How often each PSN was sent by each end.
    copies: BTreeMap<(bool, u32), u64>,
    /// From it, what happens by packet is drawn.
    key: u64,
    /// The latest packet of each direction at the tap and at its destination.
    latest: [[u64; 2]; 2],
    /// PSNs of the captured responses to READs and atomics.
    pub(crate) captured_answers: BTreeSet<u32>,
    /// The latest PSN at the tap, and the one after the last packet there.
    tap_psn: Option<u32>,
    tap_next: Option<u32>,
    tap_ns: i64,
    id: u16,
}

/// Simulates one connection.
#[must_use]
pub fn simulate(seed: u64, plan: Plan) -> Trace {
    let mut random = Random::new(seed);
    let mtu = 256 << random.below(5);
    let mut trace = Simulation::new(random.clone(), plan, mtu, true).run();
    if plan.duplex {
        let other = Random::new(random.number());
        trace.join(Simulation::new(other, plan, mtu, false).run());
    }
    trace
}

impl Simulation {
    fn new(mut random: Random, plan: Plan, mtu: u32, from_first: bool) -> Self {
        let requester = Requester::new(&mut random, plan.messages, mtu, START_NS);
        let responder = Responder::new(&mut random, requester.start());
        let start_ns = START_NS + i64::from(!from_first);
        let key = random.clone().number();
        Self {
            random,
            plan,
            trace: Trace::default(),
            now: start_ns,
            mtu,
            requester,
            responder,
            from_first,
            events: BinaryHeap::new(),
            count: 0,
            free: [start_ns; 2],
            sent: [0; 2],
            copies: BTreeMap::new(),
            key,
            latest: [[0; 2]; 2],
            captured_answers: BTreeSet::new(),
            tap_psn: None,
            tap_next: None,
            tap_ns: start_ns,
            id: 0,
        }
    }

    fn at(&mut self, time_ns: i64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time_ns, self.count, event)));
    }

    /// The requester may send at this time.
    pub(crate) fn send_at(&mut self, time_ns: i64) {
        self.at(time_ns.max(self.free[0]), Event::Send);
    }

    /// The requester's timer ends at this time.
    pub(crate) fn timer_at(&mut self, time_ns: i64, generation: u64) {
        self.at(time_ns, Event::Timer(generation));
    }

    fn run(mut self) -> Trace {
        self.start();
        let limit = 1000 * self.plan.messages.max(10) as u64;
        while let Some(Reverse((time_ns, _, event))) = self.events.pop() {
            self.now = time_ns;
            if self.requester.is_done() || self.count > limit {
                break;
            }
            match event {
                Event::Tap(forward, frame, packet) => self.tap(forward, frame, packet),
                Event::Arrive(forward, packet) => self.arrive(forward, packet),
                Event::Send => self.send(),
                Event::Timer(generation) => self.timer(generation),
            }
        }
        self.trace.complete = self.requester.is_done();
        self.trace.ended_ns = self.now;
        self.trace.mishaps.sort_by_key(|one| one.time_ns);
        self.trace
    }

    /// Whether packets that come out of order are kept.
    pub(crate) fn is_tolerant(&self) -> bool {
        self.plan.recovery != Recovery::GoBackN
    }

    /// Puts a packet on the wire.
    pub(crate) fn transmit(&mut self, forward: bool, transport: &Transport, mut packet: Packet) {
        let way = usize::from(!forward) * 2;
        let copies = self.copies.entry((forward, transport.psn)).or_default();
        packet.copy = *copies;
        *copies += 1;
        (packet.opcode, packet.psn) = (transport.opcode, transport.psn);
        let path = self.path(way, &packet);
        let mut ends = [Host::new(1), Host::new(2)];
        if forward != self.from_first {
            ends.reverse();
        }
        if self.plan.ports {
            ends[0] = ends[0].with_port(0xc000 + path as u16);
        }
        self.id = self.id.wrapping_add(1);
        let mut frame = ethernet(ends[0], ends[1], self.id, transport);
        if forward && self.happens(self.plan.corrupted, 8, &packet) {
            packet.corrupt = true;
            self.trace.corrupted += 1;
            // a byte of the ICRC
            if let Some(last) = frame.last_mut() {
                *last ^= 0x55;
            }
        }
        let (late, late_ns) = self.plan.late;
        let late_ns = if !forward && self.happens(late, 9, &packet) { late_ns } else { 0 };
        self.trace.late += u64::from(late_ns > 0);
        let wire = &mut self.free[usize::from(!forward)];
        *wire = (*wire).max(self.now) + PACKET_NS + late_ns;
        self.sent[usize::from(!forward)] += 1;
        packet.sent_ns = *wire;
        packet.serial = self.sent[usize::from(!forward)];
        packet.ack_req = transport.ack_req;
        if self.loses(way, &packet) {
            self.note(Fate::Lost, Side::Before, forward, &packet);
            return;
        }
        let tap_ns = packet.sent_ns + HOP_NS + (path * PATH_NS) as i64;
        self.at(tap_ns, Event::Tap(forward, frame, packet));
    }

    /// The queue pair that packets of a direction go to.
    pub(crate) fn qp(&self, forward: bool) -> u32 {
        if forward == self.from_first { 0x22 } else { 0x11 }
    }

    fn path(&mut self, way: usize, packet: &Packet) -> u64 {
        match self.plan.paths[way] {
            0 | 1 => 0,
            paths => self.draw(paths, 4 + way as u64, packet),
        }
    }

    /// A number below `limit` for a packet: the next one of the seed, or always the same for this `kind` of
    /// draw.
    fn draw(&mut self, limit: u64, kind: u64, packet: &Packet) -> u64 {
        if !self.plan.by_packet {
            return self.random.below(limit);
        }
        let place = u64::from(packet.psn) | packet.copy << 24 | kind << 48;
        Random::new(self.key ^ place.wrapping_mul(0x2545_f491_4f6c_dd1d)).below(limit)
    }

    /// Draws from the seed only if it may happen: other plans are as they were without it.
    fn happens(&mut self, in_1000: u64, kind: u64, packet: &Packet) -> bool {
        in_1000 > 0 && self.draw(1000, kind, packet) < in_1000
    }

    fn loses(&mut self, way: usize, packet: &Packet) -> bool {
        self.draw(1000, way as u64, packet) < self.plan.lost[way]
    }

    /// Whether the responder has no buffer for a message.
    pub(crate) fn is_not_ready(&mut self, packet: &Packet) -> bool {
        self.draw(1000, 10, packet) < self.plan.rnr
    }

    fn note(&mut self, fate: Fate, side: Side, forward: bool, packet: &Packet) {
        let &Packet { opcode, psn, sent_ns, .. } = packet;
        let from_first = forward == self.from_first;
        let time_ns = match (fate, side) {
            (Fate::Lost, Side::Before) => sent_ns,
            (Fate::Lost, Side::Behind) | (Fate::Overtaken, Side::Before) => packet.tap_ns,
            (Fate::Overtaken, Side::Behind) => self.now,
        };
        self.trace.mishaps.push(Mishap { fate, side, from_first, opcode, psn, sent_ns, time_ns });
    }

    /// Whether a packet that was sent later was at a place before this one.
    fn is_late(&mut self, place: usize, forward: bool, packet: &Packet) -> bool {
        let latest = &mut self.latest[place][usize::from(forward)];
        let late = packet.serial < *latest;
        *latest = packet.serial.max(*latest);
        late
    }

    fn tap(&mut self, forward: bool, frame: Vec<u8>, mut packet: Packet) {
        self.tap_ns = self.now.max(self.tap_ns + TICK_NS);
        self.tap_ns += (self.tap_ns ^ i64::from(!self.from_first)) & 1;
        packet.tap_ns = self.tap_ns;
        self.trace.frames.push((self.tap_ns, frame));
        if self.is_late(0, forward, &packet) {
            packet.late = true;
            self.note(Fate::Overtaken, Side::Before, forward, &packet);
        }
        if forward {
            let passed = self.tap_psn.is_some_and(|tap| diff(packet.psn, tap) <= 0);
            if !passed {
                self.tap_psn = Some(packet.psn);
            }
            let message = self.requester.message_at(packet.psn);
            let end = message.map_or(packet.psn, |message| message.packet_end(packet.psn));
            let follows = self.tap_next.replace(end) == Some(packet.psn);
            let passed = passed && !follows;
            if let Some(resend) = packet.resend.and_then(|at| self.trace.resends.get_mut(at)) {
                if resend.seen.is_none() {
                    resend.answered |= self.captured_answers.contains(&resend.psn);
                    resend.seen = Some(Seen { time_ns: self.tap_ns, psn: packet.psn, passed });
                }
            }
        } else {
            self.trace.rnr_naks += u64::from(packet.syndrome >> 5 == 1);
            if packet.opcode != opcode::ACKNOWLEDGE {
                self.captured_answers.insert(packet.psn);
            }
        }
        let way = usize::from(!forward) * 2 + 1;
        if self.loses(way, &packet) {
            self.note(Fate::Lost, Side::Behind, forward, &packet);
            return;
        }
        let path = self.path(way, &packet);
        let arrives_ns = self.now + HOP_NS + (path * PATH_NS) as i64;
        self.at(arrives_ns, Event::Arrive(forward, packet));
    }

    fn arrive(&mut self, forward: bool, packet: Packet) {
        if self.is_late(1, forward, &packet) && !packet.late {
            self.note(Fate::Overtaken, Side::Behind, forward, &packet);
        }
        if packet.corrupt {
            return;
        }
        if forward {
            self.request(packet);
        } else {
            self.response(packet);
        }
    }
}
