// SPDX-License-Identifier: GPL-2.0-or-later
//! Which header field was changed after the ICRC was made. A CRC is linear: the change of a field of up to 32
//! bits follows from the change of the CRC, and the bytes behind the field do not matter.

use super::{POLYNOMIAL, expected, found};
use crate::packet::{Net, Packet};

/// The field of IPv4 before the flags and the fragment offset.
const IDENTIFICATION: usize = 4;
/// Don't fragment.
const DF: u8 = 0x40;

/// How four bytes of a packet, `at` its network header's start, must have changed since its wrong ICRC was made.
fn change_at(packet: &Packet, frame: &[u8], at: usize) -> Option<[u8; 4]> {
    let behind = packet.icrc_off().checked_sub(usize::from(packet.l3_off) + at)?;
    let mut change = expected(packet, frame)? ^ found(packet, frame)?;
    for _ in 0..8 * behind {
        change = match change >> 31 {
            0 => change << 1,
            _ => (change ^ POLYNOMIAL) << 1 | 1,
        };
    }
    // the lowest byte is the first one
    Some(change.to_le_bytes())
}

/// Whether the wrong ICRC of a packet that was put together from fragments was made with another
/// identification or DF flag of IPv4: whoever fragments may change both. Of other wrong ICRCs, one of 32768
/// fits by chance.
#[must_use]
pub fn made_before_fragmentation(packet: &Packet, frame: &[u8]) -> bool {
    let change = || change_at(packet, frame, IDENTIFICATION);
    packet.net == Net::V2Ipv4
        && change().is_some_and(|[_, _, flags, place]| flags & !DF == 0 && place == 0)
}

/// A field that is covered by the ICRC, and that devices change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The length of IPv4, or the payload length of IPv6 and the GRH.
    Length,
    /// The source address; of IPv6, its last four bytes.
    Source,
    /// The destination address; of IPv6, its last four bytes.
    Destination,
    /// The UDP source port.
    SourcePort,
    /// The UDP destination port.
    DestinationPort,
}

impl Field {
    /// All of them, the short ones first.
    pub const ALL: [Self; 5] =
        [Self::Length, Self::SourcePort, Self::DestinationPort, Self::Source, Self::Destination];

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::SourcePort => "source_port",
            Self::DestinationPort => "destination_port",
        }
    }

    /// Whether it is one of the addresses.
    #[must_use]
    pub const fn is_address(self) -> bool {
        matches!(self, Self::Source | Self::Destination)
    }

    /// Offset in the covered bytes, and length.
    const fn place(self, packet: &Packet) -> Option<(usize, usize)> {
        let ipv4 = matches!(packet.net, Net::V2Ipv4);
        let udp = (packet.bth_off - packet.l3_off) as usize;
        Some(match (self, packet.net) {
            (_, Net::Infiniband) | (Self::SourcePort | Self::DestinationPort, Net::V1) => {
                return None;
            }
            (Self::Length, _) => (if ipv4 { 2 } else { 4 }, 2),
            (Self::Source, _) => (if ipv4 { 12 } else { 20 }, 4),
            (Self::Destination, _) => (if ipv4 { 16 } else { 36 }, 4),
            (Self::SourcePort, _) => (udp - 8, 2),
            (Self::DestinationPort, _) => (udp - 6, 2),
        })
    }

    /// What the field must have been when the wrong ICRC of a packet was made; `None`: no value of this field
    /// explains it. Any value of an address explains some ICRC: several packets must agree.
    #[must_use]
    pub fn before(self, packet: &Packet, frame: &[u8]) -> Option<u32> {
        let (at, len) = self.place(packet)?;
        let l3 = usize::from(packet.l3_off);
        let change = change_at(packet, frame, at)?;
        if change.get(len..)?.iter().any(|&byte| byte != 0) {
            return None;
        }
        let now = frame.get(l3 + at..l3 + at + len)?;
        Some(
            now.iter()
                .zip(change)
                .fold(0, |value, (now, change)| value << 8 | u32::from(now ^ change)),
        )
    }
}
