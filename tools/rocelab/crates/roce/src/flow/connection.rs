// SPDX-License-Identifier: GPL-2.0-or-later
//! What the tracker reports of a connection.

use super::pairing::PairedBy;
use super::stats::Stats;
use crate::Segment;
use crate::opcode::Service;
use crate::packet::Net;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// GID; IPv4 is IPv4-mapped.
    pub address: [u8; 16],
    /// Its QP, if the capture shows it.
    pub qpn: Option<u32>,
}

/// A connection and its statistics.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Number, in the order of the first packets.
    pub id: u32,
    /// Service of its packets.
    pub service: Service,
    /// Its encapsulation.
    pub net: Net,
    /// How the two directions were paired; `None`: only one was captured, or they did not pair.
    pub paired_by: Option<PairedBy>,
    /// Responses whose PSNs fit the other direction.
    pub fitting: u64,
    /// Responses that did not.
    pub unfitting: u64,
    /// The side that sent first.
    pub a: Endpoint,
    /// The other side.
    pub b: Endpoint,
    /// VLANs and tunnel of side a's packets.
    pub segment: Segment,
    /// Source and destination of the outermost tunnel of side a's first packet, if IP carries it.
    pub outer: Option<([u8; 16], [u8; 16])>,
    /// Time of the first packet, ns since 1970.
    pub first_ns: i64,
    /// Time of the last packet.
    pub last_ns: i64,
    /// It was evicted to make room; later packets have another number.
    pub evicted: bool,
    /// The packets of a and of b; `None`: there are none.
    pub directions: [Option<Stats>; 2],
}

impl Connection {
    /// The certainty of the pairing: `certain`, `likely`, `weak`, or `none`.
    #[must_use]
    pub const fn certainty(&self) -> &'static str {
        match self.paired_by {
            None => "none",
            Some(PairedBy::Cm | PairedBy::Deth) => "certain",
            Some(PairedBy::Psn | PairedBy::SourcePort) if self.unfitting * 20 > self.fitting => {
                "weak"
            }
            Some(PairedBy::Psn) if self.fitting >= 4 => "certain",
            Some(PairedBy::Psn | PairedBy::SourcePort) => "likely",
        }
    }
}
