// SPDX-License-Identifier: GPL-2.0-or-later
//! The invariant CRC (IBA volume 1, 7.8.1; for RoCE annexes A16 and A17.3.3).
//!
//! CRC-32 of Ethernet over an LRH of ones, the network header, UDP, BTH, extended headers, payload
//! and pad. What routers may change counts as ones: traffic class, flow label and hop limit (TTL and
//! header checksum in IPv4), the UDP checksum, and byte 4 of the BTH. The CRC is stored with its
//! least significant byte first.

use roce_crc::Crc32;

use crate::packet::{BTH_LEN, GRH_LEN, ICRC_LEN, Icrc, Net, Packet, UDP_LEN};

/// CRC-32 of the eight bytes 0xff that stand for the LRH.
const AFTER_LRH: u32 = 0x2144_df1c;
/// Up to here headers and payload are copied, so that the CRC runs once over one piece.
const ONE_PIECE: usize = 320;
/// Of longer packets so much is copied: the CRC's wide steps need a first piece that is not short.
const FIRST: usize = 128;
/// IPv4 with all options, UDP and BTH; IPv6 extension headers can need more.
const MAX_PREFIX: usize = 1024;

/// Where it is not computed for each packet.
fn crc32(before: u32, bytes: &[u8]) -> u32 {
    Crc32::new().update(before, bytes)
}

/// Masked bytes of headers of their usual length, and as many zeros as make whole vectors of it: the
/// CRC reads in the same vectors.
struct Usual<const N: usize>([u8; N]);

/// Ones where the ICRC takes ones: `bth` is the BTH's place behind the start of the network header.
const fn usual<const N: usize>(net: Net, bth: usize) -> Usual<N> {
    let mut ones = [0; N];
    match net {
        Net::V2Ipv4 => {
            ones[1] = 0xff; // type of service
            ones[8] = 0xff; // TTL
            ones[10] = 0xff; // header checksum
            ones[11] = 0xff;
        }
        Net::V2Ipv6 | Net::V1 => {
            ones[0] = 0x0f; // traffic class, flow label
            ones[1] = 0xff;
            ones[2] = 0xff;
            ones[3] = 0xff;
            ones[7] = 0xff; // hop limit
        }
    }
    if !matches!(net, Net::V1) {
        ones[bth - 2] = 0xff; // UDP checksum
        ones[bth - 1] = 0xff;
    }
    ones[bth + 4] = 0xff; // FECN, BECN, reserved
    Usual(ones)
}

impl<const N: usize> Usual<N> {
    #[inline]
    fn apply(&self, headers: &mut [u8]) -> bool {
        let Some(headers) = headers.first_chunk_mut::<N>() else { return false };
        for (byte, ones) in headers.iter_mut().zip(self.0) {
            *byte |= ones;
        }
        true
    }
}

static USUAL_V1: Usual<64> = usual(Net::V1, GRH_LEN);
static USUAL_V2_IPV4: Usual<48> = usual(Net::V2Ipv4, 20 + UDP_LEN);
static USUAL_V2_IPV6: Usual<64> = usual(Net::V2Ipv6, 40 + UDP_LEN);

/// Set the masked fields of a header copy to ones. `headers` starts at the network header; where it
/// is longer than the header, that is quicker.
#[inline]
fn mask(headers: &mut [u8], net: Net, bth: usize) {
    let done = match (net, bth) {
        (Net::V2Ipv4, 28) => USUAL_V2_IPV4.apply(headers),
        (Net::V2Ipv6, 48) => USUAL_V2_IPV6.apply(headers),
        (Net::V1, GRH_LEN) => USUAL_V1.apply(headers),
        _ => false,
    };
    if !done {
        mask_unusual(headers, net, bth);
    }
}

/// The same with IPv4 options or IPv6 extension headers before the BTH.
#[cold]
fn mask_unusual(headers: &mut [u8], net: Net, bth: usize) {
    let mut ones = |from: usize, to: usize| {
        if let Some(field) = headers.get_mut(from..to) {
            field.fill(0xff);
        }
    };
    match net {
        Net::V2Ipv4 => {
            ones(1, 2); // type of service
            ones(8, 9); // TTL
            ones(10, 12); // header checksum
        }
        Net::V2Ipv6 | Net::V1 => {
            ones(1, 4); // traffic class (its upper half below), flow label
            ones(7, 8); // hop limit
        }
    }
    ones(bth + 4, bth + 5); // FECN, BECN, reserved
    if net != Net::V1 {
        ones(bth - 2, bth); // UDP checksum
    }
    if net != Net::V2Ipv4 {
        if let Some(first) = headers.first_mut() {
            *first |= 0x0f;
        }
    }
}

/// Computes ICRCs one after the other, and keeps what they have in common.
#[derive(Debug)]
pub struct Verifier {
    crc: Crc32,
    /// Where headers are masked; only what was just written is ever read.
    scratch: [u8; MAX_PREFIX],
}

impl Default for Verifier {
    fn default() -> Self {
        Self { crc: Crc32::new(), scratch: [0; MAX_PREFIX] }
    }
}

impl Verifier {
    /// The ICRC that the packet should carry. `None` if not all of its bytes were captured.
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
        let crc = self.crc.update(AFTER_LRH, self.scratch.get(..first)?);
        Some(if rest.is_empty() { crc } else { self.crc.update(crc, rest) })
    }

    /// Verify a packet's ICRC.
    #[inline]
    pub fn check(&mut self, packet: &Packet, frame: &[u8]) -> Icrc {
        match (self.expected(packet, frame), found(packet, frame)) {
            (Some(expected), Some(found)) if expected == found => Icrc::Ok,
            (Some(_), Some(_)) => Icrc::Bad,
            _ => Icrc::Unchecked,
        }
    }
}

/// What frames of one [`crate::shape::Shape`] have in common in their ICRCs: the CRC up to behind the
/// BTH, if what is a frame's own there (IPv4 identification, AckReq, PSN) were zero. A CRC is linear:
/// those bytes change it by as much as they would change a CRC of zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common(u32);

impl Common {
    /// Of `headers` without options and extensions, from the network header to the end of the BTH.
    pub(crate) fn new<const LEN: usize>(net: Net, headers: &[u8; LEN]) -> Self {
        let mut headers = *headers;
        mask(&mut headers, net, LEN - BTH_LEN);
        let own = headers.iter_mut().rev();
        for (byte, _) in own.zip(1..).filter(|&(_, behind)| is_own(net, behind)) {
            *byte = 0;
        }
        Self(crc32(AFTER_LRH, &headers))
    }

    /// The ICRC of a frame with such headers; `covered` is what it covers behind the BTH.
    #[inline]
    pub(crate) fn expected<const LEN: usize>(
        self,
        crc: Crc32,
        net: Net,
        headers: &[u8; LEN],
        covered: &[u8],
    ) -> u32 {
        let mut own = 0;
        for (change, behind) in CHANGE.iter().zip(OWN) {
            if is_own(net, behind) {
                own ^= change[usize::from(headers[LEN - behind])];
            }
        }
        crc.update(self.0 ^ own, covered)
    }
}

/// Where a frame's own bytes are, counted back from the end of the BTH: AckReq and PSN; the
/// identification of an IPv4 header without options.
const OWN: [usize; 6] = [4, 3, 2, 1, 36, 35];

const fn is_own(net: Net, behind: usize) -> bool {
    behind <= 4 || (matches!(net, Net::V2Ipv4) && (behind == 36 || behind == 35))
}

/// By how much each of [`OWN`] changes a CRC that ends with the BTH.
static CHANGE: [[u32; 256]; OWN.len()] = {
    let mut tables = [[0; 256]; OWN.len()];
    let mut table = 0;
    while table < tables.len() {
        let mut byte = 0;
        while byte < 256 {
            let mut crc = byte as u32;
            let mut bits = 8 * OWN[table];
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

/// CRC-32's (IEEE 802.3), least significant bit first.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The ICRC that the packet should carry. `None` if not all of its bytes were captured.
#[must_use]
pub fn expected(packet: &Packet, frame: &[u8]) -> Option<u32> {
    Verifier::default().expected(packet, frame)
}

/// The ICRC found in the frame.
#[must_use]
#[inline]
pub fn found(packet: &Packet, frame: &[u8]) -> Option<u32> {
    let at = packet.icrc_off();
    frame.get(at..at + ICRC_LEN)?.first_chunk().copied().map(u32::from_le_bytes)
}

/// Verify one packet's ICRC; a [`Verifier`] is faster for many.
#[must_use]
pub fn check(packet: &Packet, frame: &[u8]) -> Icrc {
    Verifier::default().check(packet, frame)
}

/// The likely reason for a wrong ICRC, found by trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// All zero: captured before an offloading device filled it in.
    Zero,
    /// Right, but stored with its most significant byte first.
    ByteOrder,
    /// DSCP, ECN (or the traffic class) were counted as they are.
    TclassIncluded,
    /// TTL (or hop limit) was counted as it is.
    HopLimitIncluded,
    /// The IPv4 header checksum was counted as it is.
    IpChecksumIncluded,
    /// The IPv6 flow label was counted as it is.
    FlowLabelIncluded,
    /// The UDP checksum was counted as it is.
    UdpChecksumIncluded,
    /// FECN, BECN and the reserved bits were counted as they are.
    Resv8aIncluded,
    /// No masked field was masked.
    NothingMasked,
    /// The dummy LRH was left out.
    LrhMissing,
    /// The LRH's eight bytes were zeros, not ones.
    LrhZero,
    /// The pad bytes were left out.
    PadExcluded,
    /// The ICRC stands right behind the payload, before the pad.
    BeforePad,
    /// The CRC covers only the headers, or ends before the payload does: a frame cut, then resent.
    HeadersOnly,
    /// The IPv4 options were left out.
    OptionsExcluded,
    /// None of these: bytes were changed after the ICRC was made.
    Corrupted,
}

impl Diagnosis {
    /// A word for files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::ByteOrder => "byte_order",
            Self::TclassIncluded => "dscp_ecn_included",
            Self::HopLimitIncluded => "ttl_included",
            Self::IpChecksumIncluded => "ip_checksum_included",
            Self::FlowLabelIncluded => "flow_label_included",
            Self::UdpChecksumIncluded => "udp_checksum_included",
            Self::Resv8aIncluded => "bth_reserved_included",
            Self::NothingMasked => "nothing_masked",
            Self::LrhMissing => "lrh_missing",
            Self::LrhZero => "lrh_zero",
            Self::PadExcluded => "pad_excluded",
            Self::BeforePad => "before_pad",
            Self::HeadersOnly => "payload_excluded",
            Self::OptionsExcluded => "ip_options_excluded",
            Self::Corrupted => "corrupted",
        }
    }

    /// The same for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Zero => "is zero: captured before an offloading transmit filled it in",
            Self::ByteOrder => "has its bytes in reverse order",
            Self::TclassIncluded => "counts DSCP and ECN as they are, not as ones",
            Self::HopLimitIncluded => "counts the TTL (hop limit) as it is, not as ones",
            Self::IpChecksumIncluded => "counts the IPv4 header checksum as it is, not as ones",
            Self::FlowLabelIncluded => "counts the flow label as it is, not as ones",
            Self::UdpChecksumIncluded => "counts the UDP checksum as it is, not as ones",
            Self::Resv8aIncluded => "counts FECN, BECN and the reserved bits as they are",
            Self::NothingMasked => "was made without masking any field",
            Self::LrhMissing => "was made without the eight bytes of ones before the header",
            Self::LrhZero => "was made with eight zeros, not ones, before the header",
            Self::PadExcluded => "was made without the pad bytes",
            Self::BeforePad => "stands before the pad, not behind it",
            Self::HeadersOnly => "covers the headers only, not the payload",
            Self::OptionsExcluded => "was made without the IPv4 options",
            Self::Corrupted => "fits no known mistake: bytes changed after it was made",
        }
    }
}

/// Find the likely reason for a wrong ICRC. `None` if it is right or cannot be checked.
#[must_use]
pub fn diagnose(packet: &Packet, frame: &[u8]) -> Option<Diagnosis> {
    let right = expected(packet, frame)?;
    let found = found(packet, frame)?;
    if right == found {
        return None;
    }
    if found == 0 {
        return Some(Diagnosis::Zero);
    }
    if right == found.swap_bytes() {
        return Some(Diagnosis::ByteOrder);
    }
    let trial = Trial::new(packet, frame)?;
    // one field at a time, the likeliest first; a field that is all ones anyway proves nothing
    let net = packet.net;
    let fields: [(Diagnosis, &[(usize, usize)]); 6] = match net {
        Net::V2Ipv4 => [
            (Diagnosis::TclassIncluded, &[(1, 2)]),
            (Diagnosis::HopLimitIncluded, &[(8, 9)]),
            (Diagnosis::IpChecksumIncluded, &[(10, 12)]),
            (Diagnosis::TclassIncluded, &[(1, 2), (10, 12)]),
            (Diagnosis::HopLimitIncluded, &[(8, 9), (10, 12)]),
            (Diagnosis::IpChecksumIncluded, &[]),
        ],
        Net::V2Ipv6 | Net::V1 => [
            (Diagnosis::TclassIncluded, &[(0, 1), (1, 2)]),
            (Diagnosis::HopLimitIncluded, &[(7, 8)]),
            (Diagnosis::FlowLabelIncluded, &[(1, 4)]),
            (Diagnosis::TclassIncluded, &[(0, 4)]),
            (Diagnosis::FlowLabelIncluded, &[(2, 4)]),
            (Diagnosis::FlowLabelIncluded, &[]),
        ],
    };
    for (diagnosis, ranges) in fields {
        if !ranges.is_empty() && trial.with_original(AFTER_LRH, ranges) == Some(found) {
            return Some(diagnosis);
        }
    }
    let bth = trial.bth;
    let everything = [(0, trial.masked.len())];
    let attempts = [
        (Diagnosis::UdpChecksumIncluded, trial.udp_checksum()),
        (Diagnosis::Resv8aIncluded, trial.with_original(AFTER_LRH, &[(bth + 4, bth + 5)])),
        (Diagnosis::NothingMasked, trial.with_original(AFTER_LRH, &everything)),
        (Diagnosis::LrhMissing, trial.with_original(0, &[])),
        (Diagnosis::LrhZero, trial.with_original(crc32(0, &[0; 8]), &[])),
        (Diagnosis::PadExcluded, trial.up_to(packet, packet.icrc_off() - packet.pad() as usize)),
        (Diagnosis::HeadersOnly, trial.up_to(packet, packet.payload_off as usize)),
        (Diagnosis::OptionsExcluded, trial.without_options(packet)),
    ];
    for (diagnosis, crc) in attempts {
        if crc == Some(found) {
            return Some(diagnosis);
        }
    }
    let early = packet.icrc_off() - packet.pad() as usize;
    let shifted = frame.get(early..early + ICRC_LEN)?.first_chunk().copied()?;
    let before_pad = trial.up_to(packet, early) == Some(u32::from_le_bytes(shifted));
    Some(if packet.pad() > 0 && before_pad { Diagnosis::BeforePad } else { Diagnosis::Corrupted })
}

/// Headers masked and as they are, to try mixtures of both.
struct Trial<'a> {
    original: &'a [u8],
    masked: Vec<u8>,
    frame: &'a [u8],
    rest: &'a [u8],
    net: Net,
    bth: usize,
}

impl<'a> Trial<'a> {
    fn new(packet: &Packet, frame: &'a [u8]) -> Option<Self> {
        let l3 = usize::from(packet.l3_off);
        let bth = usize::from(packet.bth_off) - l3;
        let original = frame.get(l3..l3 + bth + BTH_LEN)?;
        let mut masked = original.to_vec();
        mask(&mut masked, packet.net, bth);
        let rest = frame.get(l3 + bth + BTH_LEN..packet.icrc_off())?;
        Some(Self { original, masked, frame, rest, net: packet.net, bth })
    }

    /// The CRC if `ranges` of the headers had not been masked.
    fn with_original(&self, seed: u32, ranges: &[(usize, usize)]) -> Option<u32> {
        let mut headers = self.masked.clone();
        for &(from, to) in ranges {
            headers.get_mut(from..to)?.copy_from_slice(self.original.get(from..to)?);
        }
        Some(crc32(crc32(seed, &headers), self.rest))
    }

    fn udp_checksum(&self) -> Option<u32> {
        let checksum = (self.bth.checked_sub(2)?, self.bth);
        (self.net != Net::V1).then(|| self.with_original(AFTER_LRH, &[checksum]))?
    }

    /// The CRC if the covered bytes ended at frame offset `end`.
    fn up_to(&self, packet: &Packet, end: usize) -> Option<u32> {
        let from = usize::from(packet.bth_off) + BTH_LEN;
        Some(crc32(crc32(AFTER_LRH, &self.masked), self.frame.get(from..end)?))
    }

    fn without_options(&self, packet: &Packet) -> Option<u32> {
        let udp = self.bth.checked_sub(UDP_LEN)?;
        if packet.net != Net::V2Ipv4 || udp <= 20 {
            return None;
        }
        let fixed = crc32(AFTER_LRH, self.masked.get(..20)?);
        Some(crc32(crc32(fixed, self.masked.get(udp..)?), self.rest))
    }
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

    #[test]
    fn usual_headers_are_masked_like_unusual_ones() {
        for (net, bth) in [(Net::V1, 40), (Net::V2Ipv4, 28), (Net::V2Ipv6, 48)] {
            let mut quick = [0x50; 80];
            let mut slow = quick;
            mask(&mut quick, net, bth);
            mask_unusual(&mut slow, net, bth);
            assert_eq!(quick, slow, "{net:?}");
        }
    }
}
