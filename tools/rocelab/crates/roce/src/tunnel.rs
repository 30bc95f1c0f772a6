// SPDX-License-Identifier: GPL-2.0-or-later
//! Tunnels that carry RoCE: VXLAN, Geneve, GRE (NVGRE, ERSPAN), MPLS, IP in IP, PPPoE.
//!
//! The innermost packet is the one that is followed; the addresses of the outermost tunnel stay
//! readable by [`crate::Packet::outer`].

use crate::bytes;
use crate::decode::{ETH_IPV4, ETH_IPV6, Kind, Walk, vlan_tags};
use crate::segment::Tunnel;

const ETH_PPPOE: u16 = 0x8864;
const ETH_MPLS: [u16; 2] = [0x8847, 0x8848];
/// GRE's protocol types, in addition to Ethertypes.
const ETHERNET_BRIDGED: u16 = 0x6558;
const ERSPAN_I_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
const PROTO_IPV4: u8 = 4;
const PROTO_IPV6: u8 = 41;
const PROTO_GRE: u8 = 47;
const PROTO_MPLS: u8 = 137;
/// 8472 is what Linux took before IANA assigned 4789.
const PORT_VXLAN: [u16; 2] = [4789, 8472];
const PORT_VXLAN_GPE: u16 = 4790;
const PORT_GENEVE: u16 = 6081;
const PORT_MPLS: u16 = 6635;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
/// Tunnels within tunnels: a bound keeps hostile frames cheap.
const MAX_DEPTH: u8 = 4;
const MAX_LABELS: usize = 16;

impl Walk<'_> {
    /// Notes a tunnel whose content begins at `at`; `None` if there are too many.
    fn enter(&mut self, tunnel: Tunnel, id: u32, at: usize) -> Option<()> {
        let packet = &mut *self.packet;
        if self.depth == 0 {
            packet.outer_off = packet.l3_off;
            self.tags_before = packet.vlans;
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        // tags between two tunnels count as tags
        let tags = 4 * usize::from(packet.vlans - self.tags_before);
        let len = at.checked_sub(usize::from(packet.outer_off) + tags)?;
        packet.tunnel_len = u16::try_from(len).ok()?;
        packet.segment.vlans = 0;
        (packet.segment.tunnel, packet.segment.id) = (tunnel, id);
        Some(())
    }

    fn ethernet(&mut self, at: usize) -> Option<Kind> {
        let ethertype = bytes::u16(self.frame, at + 12)?;
        self.link(vlan_tags(self.frame, ethertype, at + 14)?)
    }

    /// IP without an Ethertype.
    fn ip(&mut self, at: usize) -> Option<Kind> {
        match bytes::u8(self.frame, at)? >> 4 {
            4 => self.network(ETH_IPV4, at),
            6 => self.network(ETH_IPV6, at),
            _ => None,
        }
    }

    /// A tunnel directly above Ethernet or GRE.
    pub(crate) fn by_ethertype(&mut self, ethertype: u16, at: usize) -> Option<Kind> {
        match ethertype {
            ETH_PPPOE => self.pppoe(at),
            _ if ETH_MPLS.contains(&ethertype) => self.mpls(at),
            _ => None,
        }
    }

    /// A tunnel directly above IP.
    pub(crate) fn by_protocol(&mut self, protocol: u8, at: usize) -> Option<Kind> {
        match protocol {
            PROTO_IPV4 => {
                self.enter(Tunnel::IpInIp, 0, at)?;
                self.network(ETH_IPV4, at)
            }
            PROTO_IPV6 => {
                self.enter(Tunnel::IpInIp, 0, at)?;
                self.network(ETH_IPV6, at)
            }
            PROTO_GRE => self.gre(at),
            PROTO_MPLS => self.mpls(at),
            _ => None,
        }
    }

    /// A tunnel in UDP; `at` is the offset after the UDP header.
    pub(crate) fn by_port(&mut self, port: u16, at: usize) -> Option<Kind> {
        match port {
            PORT_GENEVE => self.geneve(at),
            PORT_VXLAN_GPE => self.vxlan_gpe(at),
            PORT_MPLS => self.mpls(at),
            _ if PORT_VXLAN.contains(&port) => {
                let [flags, .., a, b, c, _] = bytes::array::<8>(self.frame, at)?;
                if flags & 0x08 == 0 {
                    return None;
                }
                self.enter(Tunnel::Vxlan, u32::from_be_bytes([0, a, b, c]), at + 8)?;
                self.ethernet(at + 8)
            }
            _ => None,
        }
    }

    /// draft-ietf-nvo3-vxlan-gpe.
    fn vxlan_gpe(&mut self, at: usize) -> Option<Kind> {
        let [flags, _, _, next, a, b, c, _] = bytes::array::<8>(self.frame, at)?;
        if flags & 0x08 == 0 {
            return None;
        }
        self.enter(Tunnel::Vxlan, u32::from_be_bytes([0, a, b, c]), at + 8)?;
        match next {
            1 => self.network(ETH_IPV4, at + 8),
            2 => self.network(ETH_IPV6, at + 8),
            3 => self.ethernet(at + 8),
            _ => None,
        }
    }

    /// RFC 8926.
    fn geneve(&mut self, at: usize) -> Option<Kind> {
        let [first, _, p, q, a, b, c, _] = bytes::array::<8>(self.frame, at)?;
        if first >> 6 != 0 {
            return None;
        }
        let behind = at + 8 + 4 * usize::from(first & 0x3f);
        self.enter(Tunnel::Geneve, u32::from_be_bytes([0, a, b, c]), behind)?;
        match u16::from_be_bytes([p, q]) {
            ETHERNET_BRIDGED => self.ethernet(behind),
            ethertype => self.network(ethertype, behind),
        }
    }

    /// RFC 2784 and 2890; RFC 7637 (NVGRE); draft-foschiano-erspan.
    fn gre(&mut self, at: usize) -> Option<Kind> {
        let flags = bytes::u16(self.frame, at)?;
        let protocol = bytes::u16(self.frame, at + 2)?;
        let (checksum, routing) = (flags & 0x8000 != 0, flags & 0x4000 != 0);
        let (keyed, sequenced) = (flags & 0x2000 != 0, flags & 0x1000 != 0);
        if routing || flags & 7 != 0 {
            return None;
        }
        let mut behind = at + 4 + if checksum { 4 } else { 0 };
        let mut key = 0;
        if keyed {
            key = bytes::u32(self.frame, behind)?;
            behind += 4;
        }
        if sequenced {
            behind += 4;
        }
        match protocol {
            // version I has no header, and GRE without a sequence number
            ERSPAN_I_II if !sequenced => {
                self.enter(Tunnel::Erspan, 0, behind)?;
                self.ethernet(behind)
            }
            ERSPAN_I_II | ERSPAN_III => {
                let session = u32::from(bytes::u16(self.frame, behind + 2)? & 0x3ff);
                let platform =
                    protocol == ERSPAN_III && bytes::u8(self.frame, behind + 11)? & 1 != 0;
                behind += match (protocol, platform) {
                    (ERSPAN_I_II, _) => 8,
                    (_, false) => 12,
                    (_, true) => 20,
                };
                self.enter(Tunnel::Erspan, session, behind)?;
                self.ethernet(behind)
            }
            ETHERNET_BRIDGED => {
                // NVGRE: 24 bits of VSID, 8 of FlowID
                let (tunnel, id) = if keyed { (Tunnel::Nvgre, key >> 8) } else { (Tunnel::Gre, 0) };
                self.enter(tunnel, id, behind)?;
                self.ethernet(behind)
            }
            ethertype => {
                self.enter(Tunnel::Gre, key, behind)?;
                self.network(ethertype, behind)
            }
        }
    }

    /// RFC 3032; what is below the last label is IP, or Ethernet with or without a control word.
    fn mpls(&mut self, at: usize) -> Option<Kind> {
        let mut behind = at;
        for _ in 0..MAX_LABELS {
            let label = bytes::u32(self.frame, behind)?;
            behind += 4;
            if label & 0x100 == 0 {
                continue;
            }
            let content = match bytes::u8(self.frame, behind)? >> 4 {
                0 => behind + 4,
                _ => behind,
            };
            self.enter(Tunnel::Mpls, label >> 12, content)?;
            return match bytes::u8(self.frame, content)? >> 4 {
                4 | 6 if content == behind => self.ip(content),
                _ => self.ethernet(content),
            };
        }
        None
    }

    /// RFC 2516.
    fn pppoe(&mut self, at: usize) -> Option<Kind> {
        let [version, code, a, b, _, _, p, q] = bytes::array::<8>(self.frame, at)?;
        if (version, code) != (0x11, 0) {
            return None;
        }
        self.enter(Tunnel::Pppoe, u32::from(u16::from_be_bytes([a, b])), at + 8)?;
        match u16::from_be_bytes([p, q]) {
            PPP_IPV4 => self.network(ETH_IPV4, at + 8),
            PPP_IPV6 => self.network(ETH_IPV6, at + 8),
            _ => None,
        }
    }
}
