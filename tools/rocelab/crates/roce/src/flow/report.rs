// SPDX-License-Identifier: GPL-2.0-or-later
use super::pair::PairedBy;
use super::stats::Stats;
use crate::opcode::Service;
use crate::packet::Net;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// GID; IPv4 is IPv4-mapped.
    pub address: [u8; 16],
    /// Its QP, if the capture tells.
    pub qpn: Option<u32>,
}

/// What was seen of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Number, in the order of the first packets.
    pub id: u32,
    /// Service of its packets.
    pub service: Service,
    /// What carried it.
    pub net: Net,
    /// How the two directions were paired; `None`: only one was seen, or they could not be.
    pub paired_by: Option<PairedBy>,
    /// Responses that fit the other direction's PSNs.
    pub fitting: u64,
    /// Responses that did not.
    pub unfitting: u64,
    /// The side that was first seen to send.
    pub a: Endpoint,
    /// The other side.
    pub b: Endpoint,
    /// Time of its first packet, ns since 1970.
    pub first_ns: i64,
    /// Time of its last packet.
    pub last_ns: i64,
    /// It was dropped from memory to make room, and may go on under another number.
    pub evicted: bool,
    /// What a and b sent; `None`: nothing.
    pub directions: [Option<Stats>; 2],
}

impl Connection {
    /// How sure the pairing is: `certain`, `likely`, `weak`, or `none`.
    #[must_use]
    pub const fn certainty(&self) -> &'static str {
        match self.paired_by {
            None => "none",
            Some(PairedBy::Cm | PairedBy::Deth) => "certain",
            Some(PairedBy::Psn) if self.unfitting * 20 > self.fitting => "weak",
            Some(PairedBy::Psn) if self.fitting >= 4 => "certain",
            Some(PairedBy::Psn) => "likely",
        }
    }
}
