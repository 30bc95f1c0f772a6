// SPDX-License-Identifier: GPL-2.0-or-later
//! The invariant CRC (IBA volume 1, 7.8.1; for RoCE annexes A16 and A17.3.3).
//!
//! CRC-32 of Ethernet over an LRH of ones, the network header, UDP, BTH, extended headers, payload
//! and pad. Native InfiniBand has a real LRH, which counts as ones only if a GRH follows. Fields that routers may change count as ones: traffic class, flow label and hop limit
//! (TTL and header checksum in IPv4), the UDP checksum, and byte 4 of the BTH. The CRC is stored with
//! its least significant byte first.

mod absence;
mod changed_field;
mod diagnosis;
mod mask;

use mask::mask;
use roce_crc::Crc32;

pub use self::absence::{Absence, Signs, without_icrc};
pub use self::changed_field::{Field, made_before_fragmentation};
pub use self::diagnosis::{Diagnosis, diagnose};
use crate::header::{BTH_LEN, ICRC_LEN};
use crate::packet::{Icrc, Net, Packet};

/// CRC-32 of the eight bytes 0xff that stand for the LRH.
const AFTER_LRH: u32 = 0x2144_df1c;
/// The CRC before the first byte that a frame itself has.
const fn seed(net: Net) -> u32 {
    match net {
        Net::Infiniband => 0,
        Net::V1 | Net::V2Ipv4 | Net::V2Ipv6 => AFTER_LRH,
    }
}

/// Up to this length, headers and payload are copied into one buffer and the CRC runs once.
const ONE_PIECE: usize = 320;
/// The copied part of longer packets: the wide steps of the CRC need a first piece of this length.
const FIRST: usize = 128;
/// Room for IPv4 with all options, UDP and BTH. IPv6 extension headers can need more.
const MAX_PREFIX: usize = 1024;

/// CRC-32 outside of the path that every packet takes.
fn crc32(before: u32, bytes: &[u8]) -> u32 {
    Crc32::new().update(before, bytes)
}

/// Computes many ICRCs; reuses its buffer and detects the processor's features once.
#[derive(Debug)]
pub struct Verifier {
    crc: Crc32,
    /// A buffer for masked headers; only bytes just written are read.
    scratch: [u8; MAX_PREFIX],
}

impl Default for Verifier {
    fn default() -> Self {
        Self { crc: Crc32::new(), scratch: [0; MAX_PREFIX] }
    }
}

impl Verifier {
    /// The correct ICRC of a packet. `None` if not all of its bytes were captured.
    #[inline]
    pub fn expected(&mut self, packet: &Packet, frame: &[u8]) -> Option<u32> {
        if !packet.complete {
            return None;
        }
        let l3 = usize::from(packet.l3_off);
        let bytes = frame.get(l3..packet.icrc_off())?;
        let bth = usize::from(packet.bth_off) - l3;
        let first = if bytes.len() <= ONE_PIECE { bytes.len() } else { (bth + BTH_LEN).max(FIRST) };
        let (head, rest) = bytes.split_at_checked(first)?;
        self.scratch.get_mut(..first)?.copy_from_slice(head);
        mask(&mut self.scratch, packet.net, bth);
        let crc = self.crc.update(seed(packet.net), self.scratch.get(..first)?);
        Some(if rest.is_empty() { crc } else { self.crc.update(crc, rest) })
    }

    /// Verifies the ICRC of a packet.
    #[inline]
    pub fn check(&mut self, packet: &Packet, frame: &[u8]) -> Icrc {
        match (self.expected(packet, frame), found(packet, frame)) {
            (Some(expected), Some(found)) if expected == found => Icrc::Ok,
            (Some(_), Some(_)) => Icrc::Bad,
            _ => Icrc::Unchecked,
        }
    }
}

/// The CRC of headers with one [`crate::header_shape::Shape`], up to the end of the BTH, with the
/// varying bytes (IPv4 identification, AckReq, PSN) set to zero. A CRC is linear: these bytes change
/// it as they change a CRC of zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderCrc(u32);

impl HeaderCrc {
    /// The CRC of `headers` without options and extensions, from the network header to the end of
    /// the BTH.
    pub(crate) fn new<const LEN: usize>(net: Net, headers: &[u8; LEN]) -> Self {
        let mut headers = *headers;
        mask(&mut headers, net, LEN - BTH_LEN);
        let bytes = headers.iter_mut().rev();
        for (byte, _) in bytes.zip(1..).filter(|&(_, from_end)| varies(net, from_end)) {
            *byte = 0;
        }
        Self(crc32(AFTER_LRH, &headers))
    }

    /// The ICRC of a frame with these headers; `covered` are the covered bytes after the BTH.
    #[inline]
    pub(crate) fn expected<const LEN: usize>(
        self,
        crc: Crc32,
        net: Net,
        headers: &[u8; LEN],
        covered: &[u8],
    ) -> u32 {
        let mut change = 0;
        for (changes, from_end) in CHANGES.iter().zip(VARYING) {
            if varies(net, from_end) {
                change ^= changes[usize::from(headers[LEN - from_end])];
            }
        }
        crc.update(self.0 ^ change, covered)
    }
}

/// Offsets of the varying bytes, counted back from the end of the BTH: AckReq and PSN, and the
/// identification of an IPv4 header without options.
const VARYING: [usize; 6] = [4, 3, 2, 1, 36, 35];

const fn varies(net: Net, from_end: usize) -> bool {
    from_end <= 4 || (matches!(net, Net::V2Ipv4) && (from_end == 36 || from_end == 35))
}

/// How each byte of [`VARYING`] changes a CRC that ends with the BTH.
static CHANGES: [[u32; 256]; VARYING.len()] = {
    let mut tables = [[0; 256]; VARYING.len()];
    let mut table = 0;
    while table < tables.len() {
        let mut byte = 0;
        while byte < 256 {
            let mut crc = byte as u32;
            let mut bits = 8 * VARYING[table];
            while bits > 0 {
                crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
                bits -= 1;
            }
            tables[table][byte] = crc;
            byte += 1;
        }
        table += 1;
    }
    tables
};

/// The polynomial of CRC-32 (IEEE 802.3), least significant bit first.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The correct ICRC of a packet. `None` if not all of its bytes were captured.
#[must_use]
pub fn expected(packet: &Packet, frame: &[u8]) -> Option<u32> {
    Verifier::default().expected(packet, frame)
}

/// The ICRC in the frame, if the packet has one and it was captured.
#[must_use]
#[inline]
pub fn found(packet: &Packet, frame: &[u8]) -> Option<u32> {
    if !packet.complete {
        return None;
    }
    let elided = if packet.elided { packet.payload_len as usize } else { 0 };
    let at = packet.icrc_off() - elided;
    frame.get(at..at + ICRC_LEN)?.first_chunk().copied().map(u32::from_le_bytes)
}

/// Verifies the ICRC of one packet; a [`Verifier`] is faster for many.
#[must_use]
pub fn check(packet: &Packet, frame: &[u8]) -> Icrc {
    Verifier::default().check(packet, frame)
}

const _: () = assert!(FIRST <= ONE_PIECE && ONE_PIECE <= MAX_PREFIX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lrh_seed() {
        assert_eq!(crc32(0, &[0xff; 8]), AFTER_LRH);
        // what drivers/infiniband/sw/rxe starts from, before the final complement
        assert_eq!(!AFTER_LRH, 0xdebb_20e3);
    }
}
