// SPDX-License-Identifier: GPL-2.0-or-later
//! A decoded RoCE or InfiniBand packet: fixed size, no pointers; the extended headers are read from its frame.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bytes;
use crate::header::{GRH_LEN, Header, LRH_LEN};
use crate::lid::{lid_of, lids};
use crate::opcode::{self, Opcode};
use crate::segment::{self, Segment};

/// The encapsulation of the BTH.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Net {
    /// Ethertype 0x8915 and a GRH.
    #[default]
    V1,
    /// UDP over IPv4.
    V2Ipv4,
    /// UDP over IPv6.
    V2Ipv6,
    /// Native InfiniBand: an LRH, with or without a GRH.
    Infiniband,
}

impl Net {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::V1, Self::V2Ipv4, Self::V2Ipv6, Self::Infiniband];

    /// `v1`, `v2_ipv4`, `v2_ipv6` or `infiniband`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2Ipv4 => "v2_ipv4",
            Self::V2Ipv6 => "v2_ipv6",
            Self::Infiniband => "infiniband",
        }
    }

    /// Whether it is RoCE v2, which has a UDP header.
    #[must_use]
    pub const fn is_v2(self) -> bool {
        matches!(self, Self::V2Ipv4 | Self::V2Ipv6)
    }
}

/// The state of an invariant CRC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Icrc {
    /// Not verified, or not all covered bytes were captured.
    #[default]
    Unchecked,
    /// Correct.
    Ok,
    /// Wrong.
    Bad,
}

/// A decoded packet. Offsets count from the start of its frame. Lengths are those on the wire and may
/// exceed the captured bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// Source GID or address; IPv4 is IPv4-mapped (`::ffff:a.b.c.d`), as in a RoCE GID. For native
    /// InfiniBand without a GRH it stands for the LID, see [`address`].
    pub src: [u8; 16],
    /// Destination GID or address, in the same form.
    pub dst: [u8; 16],
    /// Bytes of the frame on the wire (without preamble and FCS).
    pub wire_len: u32,
    /// First byte of the payload.
    pub payload_off: u32,
    /// Message bytes, without pad.
    pub payload_len: u32,
    /// VLANs and tunnel.
    pub segment: Segment,
    /// Destination QP (24 bits).
    pub dqpn: u32,
    /// Packet sequence number (24 bits).
    pub psn: u32,
    /// Start of the IP header, GRH or LRH.
    pub l3_off: u16,
    /// Start of the BTH.
    pub bth_off: u16,
    /// Start of the header that carries the outermost tunnel; valid if there is a tunnel.
    pub outer_off: u16,
    /// Bytes of tunnels, from `outer_off` on; 0: there is none.
    pub tunnel_len: u16,
    /// UDP source port; 0 without UDP.
    pub sport: u16,
    /// Partition key.
    pub pkey: u16,
    /// Fragments beyond the first that it took on the wire; `wire_len` is the sum of all.
    pub more_frames: u16,
    /// Traffic class: DSCP and ECN.
    pub tclass: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// VLAN tags, of all link layers.
    pub vlans: u8,
    /// BTH opcode.
    pub opcode: u8,
    /// BTH byte 1: SE, M, pad count, transport version.
    pub flags: u8,
    /// BTH byte 4: FECN, BECN, six reserved bits.
    pub resv8a: u8,
    /// BTH byte 8: AckReq, seven reserved bits.
    pub apsn: u8,
    /// The encapsulation.
    pub net: Net,
    /// State of the invariant CRC.
    pub icrc: Icrc,
    /// The lengths of the network header, UDP and the BTH are inconsistent.
    pub bad_length: bool,
    /// All bytes up to the end of the ICRC were captured; without an ICRC, never.
    pub complete: bool,
    /// No packet of its capture has an ICRC.
    pub without_icrc: bool,
    /// The payload was captured and then left out of the frame: the pad follows the headers.
    pub elided: bool,
}

impl Packet {
    /// The opcode's row in the table; `None` if the specification does not define it.
    #[must_use]
    #[inline]
    pub fn op(&self) -> Option<&'static Opcode> {
        opcode::lookup(self.opcode)
    }

    /// Bytes of padding after the payload.
    #[must_use]
    #[inline]
    pub const fn pad(&self) -> u32 {
        (self.flags >> 4 & 3) as u32
    }

    /// Transport header version; only 0 exists.
    #[must_use]
    pub const fn tver(&self) -> u8 {
        self.flags & 0xf
    }

    /// Solicited event.
    #[must_use]
    pub const fn solicited(&self) -> bool {
        self.flags & 0x80 != 0
    }

    /// Migration request.
    #[must_use]
    pub const fn migreq(&self) -> bool {
        self.flags & 0x40 != 0
    }

    /// The sender asks for an acknowledgement.
    #[must_use]
    pub const fn ack_req(&self) -> bool {
        self.apsn & 0x80 != 0
    }

    /// Forward explicit congestion notification.
    #[must_use]
    pub const fn fecn(&self) -> bool {
        self.resv8a & 0x80 != 0
    }

    /// Backward explicit congestion notification.
    #[must_use]
    pub const fn becn(&self) -> bool {
        self.resv8a & 0x40 != 0
    }

    /// The ECN bits of the network header.
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.tclass & 3
    }

    /// The DSCP of the network header.
    #[must_use]
    pub const fn dscp(&self) -> u8 {
        self.tclass >> 2
    }

    /// Start of the ICRC.
    #[must_use]
    #[inline]
    pub const fn icrc_off(&self) -> usize {
        self.payload_off as usize + self.payload_len as usize + self.pad() as usize
    }

    /// The bytes of an extended header, if the opcode has it and it was captured.
    #[must_use]
    #[inline]
    pub fn header<'a>(&self, frame: &'a [u8], header: Header) -> Option<&'a [u8]> {
        let at = usize::from(self.bth_off) + self.op()?.offset(header)?;
        frame.get(at..at + header.size())
    }

    /// The payload, as far as it was captured.
    #[must_use]
    pub fn payload<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let from = (self.payload_off as usize).min(frame.len());
        let to = (from + self.payload_len as usize).min(frame.len());
        &frame[from..to]
    }

    /// Source and destination of the outermost tunnel, if IP carries it; the LIDs below a GRH.
    #[must_use]
    pub fn outer(&self, frame: &[u8]) -> Option<([u8; 16], [u8; 16])> {
        let lrh = usize::from(self.l3_off);
        if self.net == Net::Infiniband && usize::from(self.bth_off) == lrh + LRH_LEN + GRH_LEN {
            return lids(frame, lrh);
        }
        if self.tunnel_len == 0 {
            return None;
        }
        segment::ends(frame, usize::from(self.outer_off))
    }

    /// RDMA extended transport header.
    #[must_use]
    pub fn reth(&self, frame: &[u8]) -> Option<Reth> {
        let raw = self.header(frame, Header::Reth)?;
        Some(Reth { va: bytes::u64(raw, 0)?, rkey: bytes::u32(raw, 8)?, len: bytes::u32(raw, 12)? })
    }

    /// Acknowledge extended transport header.
    #[must_use]
    pub fn aeth(&self, frame: &[u8]) -> Option<Aeth> {
        let raw = self.header(frame, Header::Aeth)?;
        Some(Aeth { syndrome: bytes::u8(raw, 0)?, msn: bytes::u24(raw, 1)? })
    }

    /// Datagram extended transport header.
    #[must_use]
    pub fn deth(&self, frame: &[u8]) -> Option<Deth> {
        let raw = self.header(frame, Header::Deth)?;
        Some(Deth { qkey: bytes::u32(raw, 0)?, src_qp: bytes::u24(raw, 5)? })
    }

    /// Atomic extended transport header.
    #[must_use]
    pub fn atomic(&self, frame: &[u8]) -> Option<AtomicEth> {
        let raw = self.header(frame, Header::Atomiceth)?;
        Some(AtomicEth {
            va: bytes::u64(raw, 0)?,
            rkey: bytes::u32(raw, 8)?,
            swap_add: bytes::u64(raw, 12)?,
            compare: bytes::u64(raw, 20)?,
        })
    }

    /// The value before the atomic operation, from the ATOMICACKETH.
    #[must_use]
    pub fn atomic_ack(&self, frame: &[u8]) -> Option<u64> {
        bytes::u64(self.header(frame, Header::Atomicacketh)?, 0)
    }

    /// Immediate data, as a big-endian number.
    #[must_use]
    pub fn imm(&self, frame: &[u8]) -> Option<u32> {
        bytes::u32(self.header(frame, Header::Immdt)?, 0)
    }

    /// The R_Key to invalidate.
    #[must_use]
    pub fn ieth(&self, frame: &[u8]) -> Option<u32> {
        bytes::u32(self.header(frame, Header::Ieth)?, 0)
    }

    /// The XRC shared receive queue (24 bits).
    #[must_use]
    pub fn xrcsrq(&self, frame: &[u8]) -> Option<u32> {
        bytes::u24(self.header(frame, Header::Xrceth)?, 1)
    }

    /// The end-to-end context of a reliable datagram (24 bits).
    #[must_use]
    pub fn rdeth(&self, frame: &[u8]) -> Option<u32> {
        bytes::u24(self.header(frame, Header::Rdeth)?, 1)
    }

    /// FLUSH: placement type in bits 0 to 3, selectivity level in bits 4 and 5.
    #[must_use]
    pub fn feth(&self, frame: &[u8]) -> Option<u32> {
        bytes::u32(self.header(frame, Header::Feth)?, 0)
    }
}

/// RDMA extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth {
    /// Virtual address.
    pub va: u64,
    /// Remote key.
    pub rkey: u32,
    /// DMA length, bytes.
    pub len: u32,
}

/// Datagram extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deth {
    /// Queue key.
    pub qkey: u32,
    /// Source QP (24 bits).
    pub src_qp: u32,
}

/// Atomic extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicEth {
    /// Virtual address.
    pub va: u64,
    /// Remote key.
    pub rkey: u32,
    /// Swap data, or the value to add.
    pub swap_add: u64,
    /// Compare data.
    pub compare: u64,
}

/// Acknowledge extended transport header (IBA volume 1, chapter 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth {
    /// The syndrome byte.
    pub syndrome: u8,
    /// Message sequence number (24 bits).
    pub msn: u32,
}

/// The meaning of an AETH syndrome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// Acknowledged, with the code of the credit count; 31: no limit.
    Ack {
        /// Encoded credit count.
        credit: u8,
    },
    /// Receiver not ready, with the code of the timer.
    Rnr {
        /// Encoded delay, see [`rnr_delay_ns`].
        timer: u8,
    },
    /// Negative acknowledgement.
    Nak {
        /// 0 PSN sequence error … 4 invalid RD request.
        code: u8,
    },
    /// Reserved by the specification.
    Reserved,
}

impl Aeth {
    /// The syndrome's meaning.
    #[must_use]
    pub const fn kind(self) -> Syndrome {
        let value = self.syndrome & 0x1f;
        match self.syndrome >> 5 {
            0 => Syndrome::Ack { credit: value },
            1 => Syndrome::Rnr { timer: value },
            3 => Syndrome::Nak { code: value },
            _ => Syndrome::Reserved,
        }
    }
}

/// Names of the NAK codes (IBA volume 1, chapter 9).
pub const NAK_NAMES: [&str; 6] = [
    "psn_sequence_error",
    "invalid_request",
    "remote_access_error",
    "remote_operational_error",
    "invalid_rd_request",
    "reserved",
];

/// The minimum delay after an RNR NAK, ns (IBA volume 1, 9.7.5.2.8, table 45: code 0 is the longest).
#[must_use]
pub const fn rnr_delay_ns(timer: u8) -> u64 {
    /// In units of 10 µs.
    const DELAY: [u32; 32] = [
        65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
        1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
    ];
    DELAY[(timer & 31) as usize] as u64 * 10_000
}

/// What [`Packet::src`] or `dst` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IP address, or a GID in the form of one.
    Ip(IpAddr),
    /// A local identifier of native InfiniBand.
    Lid(u16),
}

impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(to),
            Self::Lid(lid) => write!(to, "lid:{lid}"),
        }
    }
}

/// The address in [`Packet::src`] or `dst`; an IPv4-mapped one as IPv4.
#[must_use]
pub fn address(raw: [u8; 16]) -> Address {
    if let Some(lid) = lid_of(raw) {
        return Address::Lid(lid);
    }
    let v6 = Ipv6Addr::from(raw);
    Address::Ip(match raw {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => Ipv4Addr::new(a, b, c, d).into(),
        _ => v6.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rnr_codes() {
        assert_eq!(rnr_delay_ns(0), 655_360_000);
        assert_eq!(rnr_delay_ns(1), 10_000);
        assert_eq!(rnr_delay_ns(12), 640_000);
        assert_eq!(rnr_delay_ns(31), 491_520_000);
    }

    #[test]
    fn syndromes() {
        let kind = |syndrome| Aeth { syndrome, msn: 0 }.kind();
        assert_eq!(kind(0x1f), Syndrome::Ack { credit: 31 });
        assert_eq!(kind(0x2e), Syndrome::Rnr { timer: 14 });
        assert_eq!(kind(0x60), Syndrome::Nak { code: 0 });
        assert_eq!(kind(0x40), Syndrome::Reserved);
    }
}
