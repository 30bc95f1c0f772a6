// SPDX-License-Identifier: GPL-2.0-or-later
//! How a requester sends messages, and sends again what was not acknowledged (IBA volume 1, 9.7).

use crate::connection::Simulation;
use crate::frame::{RNR_TIMER, Transport, opcode};
use crate::message::Kind;
use crate::packet::Packet;
use crate::plan::Recovery;
use crate::psn::{add, diff};
use crate::trace::{Cause, Resend};

impl Simulation {
    pub(crate) fn start(&mut self) {
        self.arm();
        self.wake();
    }

    fn wake(&mut self) {
        let requester = &mut self.requester;
        let waits = requester.send_psn != requester.end || !requester.again.is_empty();
        if waits && !std::mem::replace(&mut requester.sending, true) {
            let time_ns = self.now.max(requester.blocked_until);
            self.send_at(time_ns);
        }
    }

    fn arm(&mut self) {
        let requester = &mut self.requester;
        requester.generation += 1;
        requester.armed_ns = self.now.max(requester.blocked_until);
        let ends_ns = requester.armed_ns + requester.timeout_ns;
        let generation = requester.generation;
        self.timer_at(ends_ns, generation);
    }

    pub(crate) fn send(&mut self) {
        self.requester.sending = false;
        if self.now < self.requester.blocked_until {
            return self.wake();
        }
        let requester = &mut self.requester;
        if let Some((psn, resend)) = requester.again.pop_front() {
            self.send_packet(psn, Some(resend));
            return self.wake();
        }
        let psn = requester.send_psn;
        let open = diff(psn, requester.acked) < requester.window as i32;
        if !open || psn == requester.end {
            return;
        }
        if diff(psn, requester.high_psn) >= 0 {
            requester.resend = None;
        }
        let resend = requester.resend;
        let span = self.send_packet(psn, resend);
        let requester = &mut self.requester;
        requester.send_psn = add(psn, span);
        if diff(requester.send_psn, requester.high_psn) > 0 {
            requester.high_psn = requester.send_psn;
        }
        self.wake();
    }

    /// Sends the packet with this PSN; returns how many PSNs it uses.
    fn send_packet(&mut self, psn: u32, resend: Option<usize>) -> u32 {
        let requester = &self.requester;
        let Some(message) = requester.message_at(psn) else { return 1 };
        let offset = diff(psn, message.psn) as u32;
        let done = offset * self.mtu;
        let left = message.len.saturating_sub(done);
        let (va, rkey) = (0x10_0000 + u64::from(message.psn) * 8192, 7);
        let last = offset + 1 == message.span;
        let window_ends = diff(add(psn, 1), requester.acked) >= requester.window as i32;
        let all_sent = add(psn, 1) == requester.end;
        let mut asks = last && (psn % requester.ack_every == 0 || all_sent) || window_ends;
        let qp = self.qp(true);
        let (transport, span) = match message.kind {
            Kind::Read => {
                asks = false;
                let read = Transport::new(opcode::READ_REQUEST, qp, psn);
                (read.reth(va + u64::from(done), rkey, left), message.span - offset)
            }
            Kind::Atomic => {
                let atomic = Transport::new(opcode::FETCH_ADD, qp, psn);
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
                let mut packet = Transport::new(first + position, qp, psn);
                if message.kind == Kind::Write && offset == 0 {
                    packet = packet.reth(va, rkey, message.len);
                }
                (packet.payload(left.min(self.mtu)), 1)
            }
        };
        let transport = if asks { transport.ack_req() } else { transport };
        self.transmit(true, &transport, Packet { len: left, resend, ..Packet::default() });
        span
    }

    /// Notes that sending starts again at a PSN; `None`: all before it is new.
    fn note_resend(&mut self, psn: u32, cause: Cause, trigger_ns: Option<i64>) -> Option<usize> {
        if diff(psn, self.requester.high_psn) >= 0 {
            return None;
        }
        let from_first = self.from_first;
        let timed = cause == Cause::Timeout;
        let waited_ns = if timed { self.now - self.requester.armed_ns } else { 0 };
        let (answered, seen) = (false, None);
        let resend = Resend { cause, psn, trigger_ns, waited_ns, answered, seen, from_first };
        self.trace.resends.push(resend);
        Some(self.trace.resends.len() - 1)
    }

    fn go_back(&mut self, psn: u32, cause: Cause, trigger_ns: Option<i64>) {
        self.requester.resend = self.note_resend(psn, cause, trigger_ns);
        self.requester.again.clear();
        self.requester.send_psn = psn;
        self.arm();
        self.wake();
    }

    pub(crate) fn timer(&mut self, generation: u64) {
        if generation == self.requester.generation {
            let acked = self.requester.acked;
            self.requester.kept.clear();
            self.requester.again_to = acked;
            self.requester.implied = None;
            self.go_back(acked, Cause::Timeout, None);
        }
    }

    /// Everything before `psn` arrived; `false`: a response before it is missing.
    fn complete(&mut self, psn: u32) -> bool {
        let (advanced, stopped) = self.requester.complete(psn);
        if advanced {
            self.arm();
        }
        if stopped && self.is_tolerant() {
            let covered = &mut self.requester.covered;
            if covered.is_none_or(|before| diff(psn, before) > 0) {
                *covered = Some(psn);
            }
        }
        !stopped
    }

    /// A response before this one is missing: an implied NAK.
    fn response_gap(&mut self, trigger_ns: i64) {
        let acked = self.requester.acked;
        let known = self.requester.implied.replace(acked) == Some(acked);
        if !self.is_tolerant() && (self.requester.eager || !known) {
            self.go_back(acked, Cause::ResponseGap, Some(trigger_ns));
        }
    }

    pub(crate) fn response(&mut self, packet: Packet) {
        let psn = packet.psn;
        let requester = &self.requester;
        if diff(psn, requester.high_psn) >= 0 || diff(psn, requester.acked) < 0 {
            return;
        }
        match (packet.opcode, packet.syndrome >> 5) {
            (opcode::ACKNOWLEDGE, 0) => {
                if !self.complete(add(psn, 1)) {
                    self.response_gap(packet.tap_ns);
                }
            }
            (opcode::ACKNOWLEDGE, 1) => {
                self.complete(psn);
                if psn == self.requester.acked {
                    let wait_ns = RNR_TIMER.1 + self.random.below(5000) as i64;
                    self.requester.blocked_until = self.now + wait_ns;
                    self.requester.kept.clear();
                    self.go_back(psn, Cause::Rnr, Some(packet.tap_ns));
                }
            }
            (opcode::ACKNOWLEDGE, _) => self.nak(packet),
            _ => self.data_response(packet),
        }
        self.wake();
    }

    fn nak(&mut self, packet: Packet) {
        let Packet { psn, because, tap_ns, .. } = packet;
        self.complete(psn);
        match self.plan.recovery {
            Recovery::GoBackN => self.go_back(self.requester.acked, Cause::Nak, Some(tap_ns)),
            Recovery::SelectiveRepeat => self.send_again(psn, tap_ns),
            Recovery::Irn => {
                self.requester.kept.insert(because);
                let mut at = psn;
                if diff(self.requester.again_to, at) > 0 {
                    at = self.requester.again_to;
                }
                while diff(at, because) < 0 {
                    let message = self.requester.message_at(at);
                    if !self.requester.kept.contains(&at) {
                        self.send_again(at, tap_ns);
                    }
                    let read = message.filter(|message| message.kind == Kind::Read);
                    at = read.map_or(add(at, 1), |read| read.end());
                }
                self.requester.again_to = at;
            }
        }
    }

    fn send_again(&mut self, psn: u32, tap_ns: i64) {
        if self.requester.again.iter().any(|&(queued, _)| queued == psn) {
            return;
        }
        if let Some(resend) = self.note_resend(psn, Cause::Nak, Some(tap_ns)) {
            self.requester.again.push_back((psn, resend));
            self.arm();
        }
    }

    /// A response to a READ or an atomic.
    fn data_response(&mut self, packet: Packet) {
        let psn = packet.psn;
        self.complete(psn);
        if self.requester.acked != psn {
            if self.is_tolerant() {
                self.requester.early.insert(psn);
            }
            return self.response_gap(packet.tap_ns);
        }
        self.requester.early.insert(psn);
        while self.requester.early.contains(&self.requester.acked) {
            let next = add(self.requester.acked, 1);
            self.requester.advance(next);
        }
        self.arm();
        if let Some(covered) = self.requester.covered.take() {
            if diff(covered, self.requester.acked) > 0 {
                self.complete(covered);
            }
        }
    }
}
