// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages put together from first, middle, last and only packets that follow each other.

use super::context::Context;
use super::stats::Stats;
use super::verdict::Verdict;
use crate::finding::{At, Rule};
use crate::opcode::{Class, Opcode, Position};
use crate::packet::Net;

/// A whole message.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Its connection.
    pub connection: u32,
    /// Sent by side a.
    pub from_a: bool,
    /// Opcode of its last packet.
    pub opcode: u8,
    /// What carried it.
    pub net: Net,
    /// PSN of its first packet.
    pub psn: u32,
    /// Packets, each once.
    pub packets: u32,
    /// Payload, bytes.
    pub bytes: u64,
    /// Its packets on the wire, each once, bytes.
    pub wire_bytes: u64,
    /// Its first packet.
    pub first: At,
    /// Its last packet.
    pub last: At,
}

impl Message {
    #[inline]
    fn add(&mut self, piece: &Piece) {
        self.packets += 1;
        self.bytes += u64::from(piece.bytes);
        self.wire_bytes += u64::from(piece.wire);
        self.last = piece.at;
        self.opcode = piece.op.code;
    }
}

/// A packet as the assembly sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) psn: u32,
    pub(super) span: u32,
    pub(super) op: &'static Opcode,
    pub(super) bytes: u32,
    pub(super) wire: u32,
    /// DMA length of a WRITE's first packet.
    pub(super) reth_len: Option<u32>,
    pub(super) at: At,
}

#[derive(Debug)]
struct Open {
    class: Class,
    message: Message,
    reth_len: Option<u32>,
}

/// Takes pieces in PSN order, each once.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    open: Option<Open>,
    /// The piece before this one was taken: an odd opcode is the sender's doing, not the capture's.
    contiguous: bool,
}

impl Assembly {
    /// No message is open.
    #[inline]
    pub(super) fn is_between(&self) -> bool {
        self.open.is_none()
    }

    /// A whole message in one packet was taken elsewhere.
    #[inline]
    pub(super) fn pass(&mut self) {
        self.contiguous = true;
    }

    pub(super) fn skip(&mut self, stats: &mut Stats) {
        if self.open.take().is_some() {
            stats.incomplete += 1;
        }
        self.contiguous = false;
    }

    pub(super) fn take(&mut self, piece: &Piece, stats: &mut Stats, context: &mut Context<'_>) {
        let op = piece.op;
        if let Some(open) = self
            .open
            .as_mut()
            .filter(|open| open.class == op.class && matches!(op.position, Position::Middle))
        {
            open.message.add(piece);
            belongs(piece.at, &open.message, context);
            self.contiguous = true;
            return;
        }
        if op.position.begins() {
            if self.open.take().is_some() && self.contiguous {
                self.odd(piece, context, "begins a message before the last one ended");
            }
        } else if self.open.as_ref().is_none_or(|open| open.class != op.class) {
            let had_open = self.open.take().is_some();
            if self.contiguous {
                let what = if had_open {
                    "continues a message of another kind"
                } else {
                    "continues a message that did not begin"
                };
                self.odd(piece, context, what);
            } else {
                stats.incomplete += u64::from(op.position.ends());
            }
            // the rest of a message that began before the capture is no second mistake
            self.contiguous = op.position.ends();
            return;
        }
        self.contiguous = true;
        if !op.is_data() {
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
                bytes: 0,
                wire_bytes: 0,
                first: piece.at,
                last: piece.at,
            },
        });
        open.message.add(piece);
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

#[inline]
pub(super) fn complete(message: Message, stats: &mut Stats, context: &mut Context<'_>) {
    stats.messages += 1;
    stats.goodput_bytes += message.bytes;
    context.efficiency.add(&message);
    context
        .verdicts
        .tell(|| Verdict::Message { first: message.first.packet, last: message.last.packet });
    if context.keep_messages {
        context.messages.push(message);
    }
}

/// The packet was taken into the message.
pub(super) fn belongs(at: At, message: &Message, context: &mut Context<'_>) {
    let first = message.first.packet;
    context.verdicts.tell(|| Verdict::InMessage { packet: at.packet, first });
}

fn check_length(open: &Open, context: &mut Context<'_>) {
    let message = &open.message;
    if let Some(len) = open.reth_len.filter(|&len| u64::from(len) != message.bytes) {
        context.find(Rule::MessageLength, message.last, false, || {
            format!(
                "the RETH in packet {} announces {len} bytes, the message from PSN {} has {}",
                message.first.packet, message.psn, message.bytes
            )
        });
    }
}

/// Efficiency by message size.
#[derive(Clone, Copy, Debug, Default)]
pub struct SizeClass {
    /// Messages.
    pub messages: u64,
    /// Their packets.
    pub packets: u64,
    /// Payload, bytes.
    pub payload_bytes: u64,
    /// The messages' packets on the wire, bytes.
    pub wire_bytes: u64,
}

/// Sums per net and power of two of the message size.
#[derive(Clone, Debug)]
pub struct Efficiency {
    classes: [[SizeClass; 34]; 3],
}

impl Default for Efficiency {
    fn default() -> Self {
        Self { classes: [[SizeClass::default(); 34]; 3] }
    }
}

impl Efficiency {
    #[inline]
    fn class(&mut self, net: Net, bytes: u64) -> &mut SizeClass {
        let ceiling = bytes.checked_next_power_of_two().unwrap_or(1 << 32);
        let index = if bytes == 0 { 0 } else { 1 + ceiling.trailing_zeros().min(32) };
        &mut self.classes[net as usize][index as usize]
    }

    /// Count equal messages of one packet each.
    pub(super) fn add_single(&mut self, net: Net, bytes: u64, wire_bytes: u64, count: u64) {
        let class = self.class(net, bytes);
        class.messages += count;
        class.packets += count;
        class.payload_bytes += count * bytes;
        class.wire_bytes += count * wire_bytes;
    }

    #[inline]
    fn add(&mut self, message: &Message) {
        let class = self.class(message.net, message.bytes);
        class.messages += 1;
        class.packets += u64::from(message.packets);
        class.payload_bytes += message.bytes;
        class.wire_bytes += message.wire_bytes;
    }

    /// Net, greatest message size of the class, sums: the classes that occur.
    pub fn rows(&self) -> impl Iterator<Item = (Net, u64, SizeClass)> + '_ {
        [Net::V1, Net::V2Ipv4, Net::V2Ipv6].into_iter().flat_map(move |net| {
            self.classes[net as usize]
                .iter()
                .enumerate()
                .filter(|(_, class)| class.messages > 0)
                .map(move |(index, class)| {
                    (net, if index == 0 { 0 } else { 1 << (index - 1) }, *class)
                })
        })
    }
}
