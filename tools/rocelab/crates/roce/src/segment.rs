// SPDX-License-Identifier: GPL-2.0-or-later
//! The network that a packet belongs to, by VLANs and tunnel, and the ends of that tunnel.

use crate::bytes;

/// A kind of tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the protocols'")]
pub enum Tunnel {
    #[default]
    None,
    Vxlan,
    Geneve,
    Gre,
    Nvgre,
    Erspan,
    Mpls,
    IpInIp,
    Pppoe,
    FabricPath,
    Pbb,
    EtherIp,
    L2tp,
    Srv6,
    GtpU,
    Nsh,
    Trill,
    Tzsp,
    Sflow,
}

impl Tunnel {
    /// The name in files; `None` without a tunnel.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::None => return None,
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::Gre => "gre",
            Self::Nvgre => "nvgre",
            Self::Erspan => "erspan",
            Self::Mpls => "mpls",
            Self::IpInIp => "ip_in_ip",
            Self::Pppoe => "pppoe",
            Self::FabricPath => "fabricpath",
            Self::Pbb => "pbb",
            Self::EtherIp => "etherip",
            Self::L2tp => "l2tp",
            Self::Srv6 => "srv6",
            Self::GtpU => "gtp_u",
            Self::Nsh => "nsh",
            Self::Trill => "trill",
            Self::Tzsp => "tzsp",
            Self::Sflow => "sflow",
        })
    }
}

/// VLANs and the innermost tunnel: networks with equal addresses differ in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The VLANs of the innermost Ethernet header: the last two tags, 12 bits each.
    pub vlans: u32,
    /// VNI, VSID, key, ERSPAN session, bottom label, PPPoE session or I-SID; 0 if it has none, or one that
    /// differs by direction.
    pub id: u32,
    /// The kind of the tunnel.
    pub tunnel: Tunnel,
}

impl Segment {
    /// All of it in one number.
    #[must_use]
    #[inline]
    pub const fn number(self) -> u64 {
        (self.id as u64) << 32 | (self.tunnel as u64) << 24 | self.vlans as u64
    }
}

/// Source and destination of an IP header; IPv4 is mapped.
pub(crate) fn ends(frame: &[u8], at: usize) -> Option<([u8; 16], [u8; 16])> {
    match bytes::u8(frame, at)? >> 4 {
        4 => Some((mapped(bytes::array(frame, at + 12)?), mapped(bytes::array(frame, at + 16)?))),
        6 => Some((bytes::array(frame, at + 8)?, bytes::array(frame, at + 24)?)),
        _ => None,
    }
}

/// An IPv4 address as IPv4-mapped IPv6 (`::ffff:a.b.c.d`).
pub(crate) fn mapped([a, b, c, d]: [u8; 4]) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}
