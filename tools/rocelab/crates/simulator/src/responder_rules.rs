// SPDX-License-Identifier: GPL-2.0-or-later
//! How a responder takes requests, and answers them (IBA volume 1, 9.7).

use crate::connection::Simulation;
use crate::frame::{ACK, NAK_SEQUENCE, RNR_TIMER, Transport, opcode, rnr_nak};
use crate::message::{Kind, Message};
use crate::packet::Packet;
use crate::plan::Recovery;
use crate::psn::{add, diff, previous};

impl Simulation {
    fn acknowledge(&mut self, psn: u32, syndrome: u8, because: u32) {
        let msn = self.responder.msn;
        let ack = Transport::new(opcode::ACKNOWLEDGE, self.qp(false), psn).aeth(syndrome, msn);
        self.transmit(false, &ack, Packet { syndrome, because, ..Packet::default() });
        self.responder.unacknowledged = 0;
    }

    pub(crate) fn request(&mut self, packet: Packet) {
        let ahead = diff(packet.psn, self.responder.expected);
        if ahead > 0 {
            return self.out_of_order(packet);
        }
        let Some(message) = self.requester.message_at(packet.psn) else { return };
        if ahead < 0 {
            return self.duplicate(packet, message);
        }
        self.take(packet);
        let mut filled = false;
        while let Some(kept) = self.responder.take_kept() {
            filled = true;
            self.take(kept);
        }
        let waits = !self.responder.kept.is_empty();
        let answered = self.responder.unacknowledged == 0;
        if waits && self.plan.recovery == Recovery::SelectiveRepeat {
            self.ask(packet.psn);
        } else if (waits || filled) && !answered {
            self.acknowledge(previous(self.responder.expected), ACK, 0);
        }
    }

    fn out_of_order(&mut self, packet: Packet) {
        if self.responder.rnr_psn.is_some() {
            return;
        }
        if self.is_tolerant() {
            let place = self.responder.place(packet.psn);
            if self.responder.kept.insert(place, packet).is_some() {
                return;
            }
        }
        self.ask(packet.psn);
    }

    /// Sends a NAK for what is missing.
    fn ask(&mut self, because: u32) {
        let missing = self.responder.expected;
        if self.is_tolerant() && self.responder.kept.len() <= self.plan.patience {
            return;
        }
        let known = self.responder.naked.replace(missing) == Some(missing);
        if self.plan.recovery == Recovery::Irn || !known {
            self.acknowledge(missing, NAK_SEQUENCE, because);
        }
    }

    /// Takes the expected packet.
    fn take(&mut self, packet: Packet) {
        let psn = packet.psn;
        let Some(message) = self.requester.message_at(psn) else { return };
        let first = psn == message.psn;
        let last = add(psn, 1) == add(message.psn, message.span) || message.kind == Kind::Read;
        if message.kind == Kind::Send && first {
            let times = self.responder.rnr_done.get(&psn).copied().unwrap_or(0);
            if times < 2 && self.is_not_ready(&packet) {
                self.responder.rnr_done.insert(psn, times + 1);
                self.responder.rnr_psn = Some(psn);
                self.responder.kept.clear();
                return self.acknowledge(psn, rnr_nak(RNR_TIMER.0), 0);
            }
        }
        let responder = &mut self.responder;
        responder.naked = None;
        responder.rnr_psn = None;
        responder.unacknowledged += 1;
        let span = if message.kind == Kind::Read { message.span } else { 1 };
        responder.expected = add(psn, span);
        if last {
            responder.msn = add(responder.msn, 1);
        }
        match message.kind {
            Kind::Read => self.read(psn, packet.len),
            Kind::Atomic => self.atomic(psn),
            Kind::Send | Kind::Write => {
                let many = self.responder.unacknowledged >= self.responder.coalesce * 4;
                if packet.ack_req || last && many {
                    self.acknowledge(psn, ACK, 0);
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
                    self.acknowledge(previous(self.responder.expected), ACK, 0);
                }
            }
        }
    }

    fn read(&mut self, psn: u32, len: u32) {
        self.responder.unacknowledged = 0;
        let count = len.div_ceil(self.mtu).max(1);
        for piece in 0..count {
            let code = match (piece == 0, piece + 1 == count) {
                (true, true) => opcode::READ_RESPONSE_ONLY,
                (true, false) => opcode::READ_RESPONSE_FIRST,
                (false, false) => opcode::READ_RESPONSE_MIDDLE,
                (false, true) => opcode::READ_RESPONSE_LAST,
            };
            let mut packet = Transport::new(code, self.qp(false), add(psn, piece));
            if code != opcode::READ_RESPONSE_MIDDLE {
                packet = packet.aeth(ACK, self.responder.msn);
            }
            let left = len - piece * self.mtu;
            self.transmit(false, &packet.payload(left.min(self.mtu)), Packet::default());
        }
    }

    fn atomic(&mut self, psn: u32) {
        let msn = self.responder.msn;
        let answer = Transport::new(opcode::ATOMIC_ACKNOWLEDGE, self.qp(false), psn);
        self.transmit(false, &answer.aeth(ACK, msn).original(0), Packet::default());
        self.responder.unacknowledged = 0;
    }
}
