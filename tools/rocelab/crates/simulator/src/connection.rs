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
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::frame::{ACK, Host, NAK_SEQUENCE, Transport, ethernet, opcode, rnr_nak};
use crate::random::Random;

const REQUESTER: Host = Host::new(1);
const RESPONDER: Host = Host::new(2);
const REQUESTER_QP: u32 = 0x11;
const RESPONDER_QP: u32 = 0x22;
/// Timer code 12: 0.64 ms (table 45).
const RNR_TIMER: (u8, i64) = (12, 640_000);
const TIMEOUT_NS: i64 = 4_000_000;
/// Time of one packet on the wire, and from an end to the tap.
const PACKET_NS: i64 = 300;
const HOP_NS: i64 = 1500;
const START_NS: i64 = 1_700_000_000_000_000_000;

/// What the seed does not choose.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Messages.
    pub messages: usize,
    /// Lost packets in 1000, on each of the four ways between an end and the tap.
    pub lost: [u64; 4],
    /// RNR NAKs in 1000 messages that need a receive buffer.
    pub rnr: u64,
}

/// The side of the tap on which a packet was lost, as the packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before the tap: the capture does not have it.
    Before,
    /// Behind the tap: the capture has it.
    Behind,
}

/// A lost packet.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Where.
    pub side: Side,
    /// Its opcode.
    pub opcode: u8,
    /// Its PSN.
    pub psn: u32,
    /// When its sender sent it.
    pub time_ns: i64,
}

/// A capture, and what happened.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Time and bytes of each captured frame, in order.
    pub frames: Vec<(i64, Vec<u8>)>,
    /// Every lost packet.
    pub lost: Vec<Lost>,
    /// The requester completed all messages.
    pub complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Send,
    Write,
    Read,
    Atomic,
}

#[derive(Clone, Copy, Debug)]
struct Message {
    kind: Kind,
    psn: u32,
    span: u32,
    len: u32,
}

const fn add(psn: u32, n: u32) -> u32 {
    psn.wrapping_add(n) & 0xff_ffff
}

/// `a - b` in 24 bits.
const fn diff(a: u32, b: u32) -> i32 {
    (a.wrapping_sub(b) << 8) as i32 >> 8
}

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

/// What an end reads of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    opcode: u8,
    psn: u32,
    ack_req: bool,
    syndrome: u8,
    /// Bytes that a READ asks for.
    len: u32,
    sent_ns: i64,
}

struct Simulation {
    random: Random,
    plan: Plan,
    trace: Trace,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    count: u64,
    now: i64,
    /// When the wire of each end is free.
    free: [i64; 2],
    id: u16,
    mtu: u32,
    messages: Vec<Message>,
    // requester
    window: u32,
    ack_every: u32,
    send_psn: u32,
    high_psn: u32,
    acked: u32,
    end: u32,
    blocked_until: i64,
    sending: bool,
    generation: u64,
    // responder
    expected: u32,
    msn: u32,
    nak_sent: bool,
    rnr_psn: Option<u32>,
    rnr_done: BTreeMap<u32, u32>,
    unacknowledged: u32,
    coalesce: u32,
}

/// Simulates one connection.
#[must_use]
pub fn simulate(seed: u64, plan: Plan) -> Trace {
    let mut random = Random::new(seed);
    let mtu = 256 << random.below(5);
    let start = match random.below(3) {
        0 => add(0, (random.below(40) as u32).wrapping_neg()),
        1 => 0,
        _ => random.below(1 << 24) as u32,
    };
    let mut messages = Vec::new();
    let mut psn = start;
    for _ in 0..plan.messages {
        let kind = [Kind::Send, Kind::Write, Kind::Write, Kind::Read, Kind::Atomic]
            [random.below(5) as usize];
        let len = match (kind, random.below(3)) {
            (Kind::Atomic, _) => 8,
            (_, 0) => random.below(u64::from(mtu)) as u32,
            (_, 1) => mtu * random.below(6) as u32,
            _ => random.below(u64::from(mtu) * 6) as u32,
        };
        let span = if kind == Kind::Atomic { 1 } else { len.div_ceil(mtu).max(1) };
        messages.push(Message { kind, psn, span, len });
        psn = add(psn, span);
    }
    let window = 1 + random.below(64) as u32;
    let mut simulation = Simulation {
        plan,
        trace: Trace::default(),
        events: BinaryHeap::new(),
        count: 0,
        now: START_NS,
        free: [START_NS; 2],
        id: 0,
        mtu,
        messages,
        window,
        ack_every: (1 + random.below(8) as u32).min(window),
        send_psn: start,
        high_psn: start,
        acked: start,
        end: psn,
        blocked_until: START_NS,
        sending: false,
        generation: 0,
        expected: start,
        msn: random.below(2) as u32 * 0xff_fff0,
        nak_sent: false,
        rnr_psn: None,
        rnr_done: BTreeMap::new(),
        unacknowledged: 0,
        coalesce: 1 + random.below(4) as u32,
        random,
    };
    simulation.run();
    simulation.trace
}

impl Simulation {
    fn at(&mut self, time_ns: i64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time_ns, self.count, event)));
    }

    fn run(&mut self) {
        self.arm();
        self.wake();
        let limit = 400 * self.messages.len().max(10) as u64;
        while let Some(Reverse((time_ns, _, event))) = self.events.pop() {
            self.now = time_ns;
            if self.acked == self.end || self.count > limit {
                break;
            }
            match event {
                Event::Tap(forward, frame, packet) => self.tap(forward, frame, packet),
                Event::Arrive(true, packet) => self.request(packet),
                Event::Arrive(false, packet) => self.response(packet),
                Event::Send => self.send(),
                Event::Timer(generation) if generation == self.generation => self.timeout(),
                Event::Timer(_) => {}
            }
        }
        self.trace.complete = self.acked == self.end;
    }

    /// Puts a packet on the wire.
    fn transmit(&mut self, forward: bool, transport: &Transport, syndrome: u8, len: u32) {
        let (from, to) = if forward { (REQUESTER, RESPONDER) } else { (RESPONDER, REQUESTER) };
        self.id = self.id.wrapping_add(1);
        let frame = ethernet(from, to, self.id, transport);
        let wire = &mut self.free[usize::from(!forward)];
        *wire = (*wire).max(self.now) + PACKET_NS;
        let sent_ns = *wire;
        let Transport { opcode, psn, ack_req, .. } = *transport;
        let packet = Packet { opcode, psn, ack_req, syndrome, len, sent_ns };
        if self.loses(usize::from(!forward) * 2) {
            self.trace.lost.push(Lost { side: Side::Before, opcode, psn, time_ns: sent_ns });
            return;
        }
        self.at(sent_ns + HOP_NS, Event::Tap(forward, frame, packet));
    }

    fn loses(&mut self, way: usize) -> bool {
        self.random.below(1000) < self.plan.lost[way]
    }

    fn tap(&mut self, forward: bool, frame: Vec<u8>, packet: Packet) {
        self.trace.frames.push((self.now, frame));
        if self.loses(usize::from(!forward) * 2 + 1) {
            let Packet { opcode, psn, sent_ns: time_ns, .. } = packet;
            self.trace.lost.push(Lost { side: Side::Behind, opcode, psn, time_ns });
            return;
        }
        self.at(self.now + HOP_NS, Event::Arrive(forward, packet));
    }

    // ---- requester

    fn message_at(&self, psn: u32) -> Option<Message> {
        let at = self.messages.partition_point(|message| diff(message.psn, psn) <= 0);
        self.messages.get(at.checked_sub(1)?).copied()
    }

    fn wake(&mut self) {
        if !self.sending && self.send_psn != self.end {
            self.sending = true;
            let free = self.free[0].max(self.now).max(self.blocked_until);
            self.at(free, Event::Send);
        }
    }

    fn arm(&mut self) {
        self.generation += 1;
        self.at(self.now.max(self.blocked_until) + TIMEOUT_NS, Event::Timer(self.generation));
    }

    fn send(&mut self) {
        self.sending = false;
        if self.now < self.blocked_until {
            return self.wake();
        }
        let open = diff(self.send_psn, self.acked) < self.window as i32;
        let Some(message) = self.message_at(self.send_psn) else { return };
        if !open || self.send_psn == self.end {
            return;
        }
        let psn = self.send_psn;
        let offset = diff(psn, message.psn) as u32;
        let done = offset * self.mtu;
        let left = message.len.saturating_sub(done);
        let (va, rkey) = (0x10_0000 + u64::from(message.psn) * 8192, 7);
        let last = offset + 1 == message.span;
        let window_ends = diff(add(psn, 1), self.acked) >= self.window as i32;
        let all_sent = add(psn, 1) == self.end;
        let mut asks = last && (psn % self.ack_every == 0 || all_sent) || window_ends;
        let (transport, span) = match message.kind {
            Kind::Read => {
                asks = false;
                let read = Transport::new(opcode::READ_REQUEST, RESPONDER_QP, psn);
                let va = va + u64::from(done);
                (read.reth(va, rkey, left), message.span - offset)
            }
            Kind::Atomic => {
                let atomic = Transport::new(opcode::FETCH_ADD, RESPONDER_QP, psn);
                (atomic.fetch_add(va, rkey), 1)
            }
            Kind::Send | Kind::Write => {
                let first = if message.kind == Kind::Send { 0 } else { opcode::WRITE_FIRST };
                let position = match (offset == 0, last) {
                    (true, true) => 4,
                    (true, false) => 0,
                    (false, false) => 1,
                    (false, true) => 2,
                };
                let mut packet = Transport::new(first + position, RESPONDER_QP, psn);
                if message.kind == Kind::Write && offset == 0 {
                    packet = packet.reth(va, rkey, message.len);
                }
                (packet.payload(left.min(self.mtu)), 1)
            }
        };
        let transport = if asks { transport.ack_req() } else { transport };
        self.transmit(true, &transport, 0, left);
        self.send_psn = add(psn, span);
        if diff(self.send_psn, self.high_psn) > 0 {
            self.high_psn = self.send_psn;
        }
        self.wake();
    }

    fn go_back(&mut self, psn: u32) {
        self.send_psn = psn;
        self.arm();
        self.wake();
    }

    fn timeout(&mut self) {
        self.go_back(self.acked);
    }

    /// Completes what comes before `psn`; an unanswered READ or atomic stops it (implied NAK).
    fn complete(&mut self, psn: u32) -> bool {
        let from = self.messages.partition_point(|message| diff(message.psn, self.acked) < 0);
        let from = from.saturating_sub(1);
        let stop = self.messages[from..]
            .iter()
            .find(|message| {
                let end = add(message.psn, message.span);
                matches!(message.kind, Kind::Read | Kind::Atomic)
                    && diff(end, self.acked) > 0
                    && diff(message.psn, psn) < 0
            })
            .copied();
        let to = match stop {
            Some(stop) if diff(stop.psn, self.acked) > 0 => stop.psn,
            Some(_) => self.acked,
            None => psn,
        };
        if diff(to, self.acked) > 0 {
            self.acked = to;
            self.arm();
        }
        stop.is_some()
    }

    fn response(&mut self, packet: Packet) {
        let psn = packet.psn;
        if diff(psn, self.high_psn) >= 0 || diff(psn, self.acked) < 0 {
            return;
        }
        match packet.opcode {
            opcode::ACKNOWLEDGE => match packet.syndrome >> 5 {
                0 => {
                    if self.complete(add(psn, 1)) {
                        self.go_back(self.acked);
                    }
                }
                1 => {
                    self.complete(psn);
                    if psn == self.acked {
                        self.blocked_until =
                            self.now + RNR_TIMER.1 + self.random.below(5000) as i64;
                        self.go_back(psn);
                    }
                }
                _ => {
                    self.complete(psn);
                    self.go_back(self.acked);
                }
            },
            _ => {
                // a READ response or an atomic response
                let missing = self.complete(psn);
                if missing && self.acked != psn {
                    return self.go_back(self.acked);
                }
                if self.acked == psn {
                    self.acked = add(psn, 1);
                    if diff(self.send_psn, self.acked) < 0 {
                        self.send_psn = self.acked;
                    }
                    self.arm();
                }
            }
        }
        self.wake();
    }

    // ---- responder

    fn acknowledge(&mut self, psn: u32, syndrome: u8) {
        let ack = Transport::new(opcode::ACKNOWLEDGE, REQUESTER_QP, psn).aeth(syndrome, self.msn);
        self.transmit(false, &ack, syndrome, 0);
        self.unacknowledged = 0;
    }

    fn request(&mut self, packet: Packet) {
        let psn = packet.psn;
        let Some(message) = self.message_at(psn) else { return };
        let ahead = diff(psn, self.expected);
        if ahead > 0 {
            if !self.nak_sent && self.rnr_psn.is_none() {
                self.nak_sent = true;
                self.acknowledge(self.expected, NAK_SEQUENCE);
            }
            return;
        }
        if ahead < 0 {
            return self.duplicate(packet, message);
        }
        let offset = diff(psn, message.psn) as u32;
        let last = offset + 1 == message.span || message.kind == Kind::Read;
        if message.kind == Kind::Send && offset == 0 {
            let times = self.rnr_done.get(&psn).copied().unwrap_or(0);
            if times < 2 && self.random.below(1000) < self.plan.rnr {
                self.rnr_done.insert(psn, times + 1);
                self.rnr_psn = Some(psn);
                return self.acknowledge(psn, rnr_nak(RNR_TIMER.0));
            }
        }
        self.nak_sent = false;
        self.rnr_psn = None;
        self.unacknowledged += 1;
        match message.kind {
            Kind::Read => {
                self.expected = add(message.psn, message.span);
                self.msn = add(self.msn, 1);
                self.read(psn, packet.len);
            }
            Kind::Atomic => {
                self.expected = add(psn, 1);
                self.msn = add(self.msn, 1);
                self.atomic(psn);
            }
            Kind::Send | Kind::Write => {
                self.expected = add(psn, 1);
                if last {
                    self.msn = add(self.msn, 1);
                }
                if packet.ack_req || last && self.unacknowledged >= self.coalesce * 4 {
                    self.acknowledge(psn, ACK);
                }
            }
        }
    }

    fn duplicate(&mut self, packet: Packet, message: Message) {
        match message.kind {
            Kind::Read => self.read(packet.psn, packet.len),
            Kind::Atomic => self.atomic(packet.psn),
            Kind::Send | Kind::Write => {
                if packet.ack_req {
                    self.acknowledge(add(self.expected, 0xff_ffff), ACK);
                }
            }
        }
    }

    fn read(&mut self, psn: u32, len: u32) {
        self.unacknowledged = 0;
        let count = len.div_ceil(self.mtu).max(1);
        let mut pieces: VecDeque<u32> = (0..count).collect();
        while let Some(piece) = pieces.pop_front() {
            let code = match (piece == 0, piece + 1 == count) {
                (true, true) => opcode::READ_RESPONSE_ONLY,
                (true, false) => opcode::READ_RESPONSE_FIRST,
                (false, false) => opcode::READ_RESPONSE_MIDDLE,
                (false, true) => opcode::READ_RESPONSE_LAST,
            };
            let mut packet = Transport::new(code, REQUESTER_QP, add(psn, piece));
            if code != opcode::READ_RESPONSE_MIDDLE {
                packet = packet.aeth(ACK, self.msn);
            }
            let left = len - piece * self.mtu;
            self.transmit(false, &packet.payload(left.min(self.mtu)), ACK, 0);
        }
    }

    fn atomic(&mut self, psn: u32) {
        let code = opcode::ATOMIC_ACKNOWLEDGE;
        let packet = Transport::new(code, REQUESTER_QP, psn).aeth(ACK, self.msn).original(0);
        self.transmit(false, &packet, ACK, 0);
        self.unacknowledged = 0;
    }
}
