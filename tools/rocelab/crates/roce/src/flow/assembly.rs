// SPDX-License-Identifier: GPL-2.0-or-later
//! Assembles messages from first, middle, last and only packets in PSN order.

use super::context::Context;
use super::message::Message;
use super::psn;
use super::stats::Stats;
use super::verdict::Verdict;
use crate::finding::{At, Rule};
use crate::opcode::{Class, Opcode, Position};

/// The parts of a packet that matter to the assembly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) psn: u32,
    pub(super) span: u32,
    /// The path MTU, and so the span of a READ, is certain.
    pub(super) exact: bool,
    pub(super) op: &'static Opcode,
    pub(super) bytes: u32,
    pub(super) wire: u32,
    pub(super) more_frames: u16,
    /// DMA length of the first packet of a WRITE.
    pub(super) reth_len: Option<u32>,
    pub(super) at: At,
}

#[derive(Clone, Debug)]
struct Open {
    class: Class,
    message: Message,
    reth_len: Option<u32>,
}

/// Takes each piece once, in PSN order.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Assembly {
    /// The PSN after the previous piece.
    next: u32,
    /// The previous piece was taken, so the sender, not the capture, is the cause of an odd opcode.
    contiguous: bool,
    open: Option<Open>,
}

impl Assembly {
    /// No message is open.
    #[inline]
    pub(super) fn is_between(&self) -> bool {
        self.open.is_none()
    }

    /// Notes that a message of one packet was taken elsewhere.
    #[inline]
    pub(super) fn pass(&mut self, next: u32) {
        self.contiguous = true;
        self.next = next;
    }

    /// Notes that packets before the next piece may be missing.
    pub(super) fn doubt(&mut self) {
        self.contiguous = false;
    }

    /// The bytes of the message that a packet with its end completes; `None`: it completes none.
    pub(super) fn bytes_with(&self, op: &Opcode, bytes: u32) -> Option<u32> {
        if op.position.begins() {
            return Some(bytes);
        }
        let open = self.open.as_ref().filter(|open| open.class == op.class)?;
        u32::try_from(open.message.bytes + u64::from(bytes)).ok()
    }

    pub(super) fn skip(&mut self, stats: &mut Stats) {
        if self.open.take().is_some() {
            stats.incomplete += 1;
        }
        self.contiguous = false;
    }

    pub(super) fn take(&mut self, piece: &Piece, stats: &mut Stats, context: &mut Context<'_>) {
        let op = piece.op;
        self.contiguous &= piece.psn == self.next;
        self.next = psn::add(piece.psn, piece.span);
        if let Some(open) = self
            .open
            .as_mut()
            .filter(|open| open.class == op.class && matches!(op.position, Position::Middle))
        {
            add(&mut open.message, piece);
            belongs(piece.at, &open.message, context);
            self.contiguous = true;
            return;
        }
        if op.position.begins() {
            if self.open.take().is_some() && self.contiguous && !stats.pmtu_guessed {
                self.odd(piece, context, "begins a message before the last one ended");
            }
        } else if self.open.as_ref().is_none_or(|open| open.class != op.class) {
            let had_open = self.open.take().is_some();
            if self.contiguous && !stats.pmtu_guessed {
                let what = if had_open {
                    "continues a message of another kind"
                } else {
                    "continues a message that never began"
                };
                self.odd(piece, context, what);
            } else {
                stats.incomplete += u64::from(op.position.ends());
            }
            // report a message that began before the capture only once
            self.contiguous = op.position.ends();
            return;
        }
        self.contiguous = true;
        if !op.is_data() {
            // after a READ of uncertain span, packets may be missing
            self.contiguous = piece.exact;
            stats.requests += 1;
            return;
        }
        let mut open = self.open.take().unwrap_or(Open {
            class: op.class,
            reth_len: piece.reth_len,
            message: Message {
                connection: context.connection,
                from_a: context.from_a,
                opcode: op.code,
                net: context.net,
                psn: piece.psn,
                packets: 0,
                frames: 0,
                bytes: 0,
                wire_bytes: 0,
                first: piece.at,
                last: piece.at,
            },
        });
        add(&mut open.message, piece);
        belongs(piece.at, &open.message, context);
        if !op.position.ends() {
            self.open = Some(open);
            return;
        }
        if op.class == Class::Write {
            check_length(&open, context);
        }
        complete(open.message, stats, context);
    }

    fn odd(&self, piece: &Piece, context: &mut Context<'_>, what: &str) {
        let (name, psn) = (piece.op.name, piece.psn);
        context
            .find(Rule::OpcodeSequence, piece.at, false, || format!("{name} at PSN {psn} {what}"));
    }
}

// its caller has the message in registers
#[inline(always)]
pub(super) fn complete(message: Message, stats: &mut Stats, context: &mut Context<'_>) {
    stats.messages += 1;
    stats.goodput_bytes += message.bytes;
    context.efficiency.add(&message);
    context
        .verdicts
        .add(|| Verdict::Message { first: message.first.packet, last: message.last.packet });
    if context.keep_messages {
        context.messages.push(message);
    }
}

/// Records that a packet belongs to a message.
pub(super) fn belongs(at: At, message: &Message, context: &mut Context<'_>) {
    let first = message.first.packet;
    context.verdicts.add(|| Verdict::InMessage { packet: at.packet, first });
}

fn check_length(open: &Open, context: &mut Context<'_>) {
    let message = &open.message;
    if let Some(len) = open.reth_len.filter(|&len| u64::from(len) != message.bytes) {
        context.find(Rule::MessageLength, message.last, false, || {
            format!(
                "the RETH in packet {} announces {len} bytes; the message at PSN {} carries {}",
                message.first.packet, message.psn, message.bytes
            )
        });
    }
}

#[inline]
fn add(message: &mut Message, piece: &Piece) {
    message.packets += 1;
    message.frames += 1 + u32::from(piece.more_frames);
    message.bytes += u64::from(piece.bytes);
    message.wire_bytes += u64::from(piece.wire);
    message.last = piece.at;
    message.opcode = piece.op.code;
}
