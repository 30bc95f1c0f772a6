// SPDX-License-Identifier: GPL-2.0-or-later
//! Packets without an ICRC: captured before an adapter added it, or made by software that never does.

use crate::bytes;
use crate::header::{GRH_LEN, ICRC_LEN, UDP_LEN};
use crate::opcode::{Class, Position};
use crate::packet::{Icrc, Net, Packet};

/// How a capture lacks all ICRCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The lengths of IP and UDP leave it out.
    LeftOut,
    /// The lengths count it, and the frames end before it.
    Counted,
}

impl Absence {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeftOut => "left_out",
            Self::Counted => "counted",
        }
    }

    /// The inverse of [`Self::name`].
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::LeftOut, Self::Counted].into_iter().find(|one| one.name() == name)
    }
}

/// What lengths have shown so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs(u8);

const LEFT_OUT: u8 = 1;
const NOT_LEFT_OUT: u8 = 2;
const COUNTED: u8 = 4;
const NOT_COUNTED: u8 = 8;

impl Signs {
    /// Adds those of a packet; native InfiniBand gives none.
    pub fn add(&mut self, packet: &Packet, frame: &[u8]) {
        let Some(end) = end(packet, frame) else { return };
        if let Some(without) = end_without_icrc(packet, frame) {
            self.0 |= match end.checked_sub(without) {
                Some(0) => LEFT_OUT,
                Some(ICRC_LEN) => NOT_LEFT_OUT,
                _ => 0,
            };
        }
        self.0 |= match end.checked_sub(packet.wire_len as usize) {
            None | Some(0) => NOT_COUNTED,
            Some(ICRC_LEN) => COUNTED,
            Some(_) => 0,
        };
    }

    /// Adds those of others.
    pub const fn merge(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// How all packets lack the ICRC; one packet proves that they do, or that they do not.
    #[must_use]
    pub const fn absence(self) -> Option<Absence> {
        if self.0 & (LEFT_OUT | NOT_LEFT_OUT) == LEFT_OUT {
            Some(Absence::LeftOut)
        } else if self.0 & (COUNTED | NOT_COUNTED) == COUNTED {
            Some(Absence::Counted)
        } else {
            None
        }
    }
}

/// The end of the packet by the length in its network or UDP header.
fn end(packet: &Packet, frame: &[u8]) -> Option<usize> {
    let bth = usize::from(packet.bth_off);
    match packet.net {
        Net::V2Ipv4 | Net::V2Ipv6 => {
            let from = bth.checked_sub(UDP_LEN)?;
            Some(from + usize::from(bytes::u16(frame, from + 4)?))
        }
        Net::V1 => Some(bth + usize::from(bytes::u16(frame, bth.checked_sub(GRH_LEN - 4)?)?)),
        Net::Infiniband => None,
    }
}

/// The end of payload and pad, of packets whose headers tell it.
fn end_without_icrc(packet: &Packet, frame: &[u8]) -> Option<usize> {
    let op = packet.op()?;
    let payload = match op.class {
        Class::Acknowledge | Class::ReadRequest | Class::Atomic | Class::AtomicAcknowledge => 0,
        Class::Write if op.position == Position::Only => packet.reth(frame)?.len,
        _ => return None,
    };
    (packet.payload_off as usize + packet.pad() as usize).checked_add(payload as usize)
}

/// Gives a packet the lengths that it has without an ICRC.
pub fn without_icrc(packet: &mut Packet, frame: &[u8], how: Absence) {
    let Some(end) = end(packet, frame) else { return };
    let end = if how == Absence::Counted { end.saturating_sub(ICRC_LEN) } else { end };
    packet.without_icrc = true;
    packet.complete = false;
    packet.icrc = Icrc::Unchecked;
    let behind = packet.payload_off as usize + packet.pad() as usize;
    packet.bad_length = end > packet.wire_len as usize || end < behind;
    packet.payload_len = end.saturating_sub(behind) as u32;
}
