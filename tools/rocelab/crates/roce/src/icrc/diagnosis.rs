// SPDX-License-Identifier: GPL-2.0-or-later
//! Diagnoses a wrong ICRC: tries the mistakes that implementations are known to make.

use super::mask::mask;
use super::{AFTER_LRH, crc32, expected, found};
use crate::header::{BTH_LEN, ICRC_LEN, UDP_LEN};
use crate::packet::{Net, Packet};

/// The likely reason for a wrong ICRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// All zero: captured before an offloading device filled it in.
    Zero,
    /// Correct, but stored with its most significant byte first.
    ByteOrder,
    /// DSCP and ECN (or the traffic class) were not masked.
    TclassIncluded,
    /// The TTL (or hop limit) was not masked.
    HopLimitIncluded,
    /// The IPv4 header checksum was not masked.
    IpChecksumIncluded,
    /// The IPv6 flow label was not masked.
    FlowLabelIncluded,
    /// The UDP checksum was not masked.
    UdpChecksumIncluded,
    /// FECN, BECN and the reserved bits were not masked.
    Resv8aIncluded,
    /// No masked field was masked.
    NothingMasked,
    /// The dummy LRH was left out.
    LrhMissing,
    /// The eight bytes of the LRH were zeros, not ones.
    LrhZero,
    /// The pad bytes were left out.
    PadExcluded,
    /// The ICRC follows the payload immediately, before the pad.
    BeforePad,
    /// The CRC covers only the headers.
    HeadersOnly,
    /// The IPv4 options were left out.
    OptionsExcluded,
    /// None of these: bytes changed after the ICRC was computed.
    Corrupted,
}

impl Diagnosis {
    /// The name in files.
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

    /// A description that completes "the ICRC …".
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
            Self::BeforePad => "is before the pad, not after it",
            Self::HeadersOnly => "covers the headers only, not the payload",
            Self::OptionsExcluded => "was made without the IPv4 options",
            Self::Corrupted => "fits no known mistake: bytes changed after it was made",
        }
    }
}

/// Finds the likely reason for a wrong ICRC. `None` if it is correct or cannot be checked.
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
    // one field at a time, the likeliest first; a field that is all ones already proves nothing
    let net = packet.net;
    let fields: &[(Diagnosis, &[(usize, usize)])] = match net {
        Net::V2Ipv4 => &[
            (Diagnosis::TclassIncluded, &[(1, 2)]),
            (Diagnosis::HopLimitIncluded, &[(8, 9)]),
            (Diagnosis::IpChecksumIncluded, &[(10, 12)]),
            (Diagnosis::TclassIncluded, &[(1, 2), (10, 12)]),
            (Diagnosis::HopLimitIncluded, &[(8, 9), (10, 12)]),
        ],
        Net::V2Ipv6 | Net::V1 => &[
            (Diagnosis::TclassIncluded, &[(0, 1), (1, 2)]),
            (Diagnosis::HopLimitIncluded, &[(7, 8)]),
            (Diagnosis::FlowLabelIncluded, &[(1, 4)]),
            (Diagnosis::TclassIncluded, &[(0, 4)]),
            (Diagnosis::FlowLabelIncluded, &[(2, 4)]),
        ],
        // adapters make and check it, so nobody gets it wrong
        Net::Infiniband => return Some(Diagnosis::Corrupted),
    };
    for &(diagnosis, ranges) in fields {
        if trial.with_original(AFTER_LRH, ranges) == Some(found) {
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

/// Headers with and without the mask, to try combinations of both.
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

    /// The CRC with `ranges` of the headers not masked.
    fn with_original(&self, seed: u32, ranges: &[(usize, usize)]) -> Option<u32> {
        let mut headers = self.masked.clone();
        for &(from, to) in ranges {
            headers.get_mut(from..to)?.copy_from_slice(self.original.get(from..to)?);
        }
        Some(crc32(crc32(seed, &headers), self.rest))
    }

    fn udp_checksum(&self) -> Option<u32> {
        let checksum = (self.bth.checked_sub(2)?, self.bth);
        self.net.is_v2().then(|| self.with_original(AFTER_LRH, &[checksum]))?
    }

    /// The CRC if it covered the frame only up to offset `end`.
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
