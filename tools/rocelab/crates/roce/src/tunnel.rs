// SPDX-License-Identifier: GPL-2.0-or-later
//! What may stand between a link layer and RoCE: tunnels, tags, and the headers of fabrics and samplers.
//! The tables [`BY_ETHERTYPE`], [`BY_PROTOCOL`] and [`BY_PORT`] name all of them.
//!
//! The innermost packet is the one that is followed; the addresses of the outermost tunnel stay
//! readable by [`crate::Packet::outer`].

use crate::bytes;
use crate::decode::{ETH_IPV4, ETH_IPV6, ETH_ROCE_V1, Kind, LinkLayer, Walk, vlan_tags};
use crate::layer::Layer;
use crate::segment::{Segment, Tunnel};

const PROTO_L2TP: u8 = 115;

/// Takes the header at an offset, and what follows it.
type Header = for<'a, 'b> fn(&'a mut Walk<'b>, usize) -> Option<Kind>;

/// Headers by Ethertype; `at` is the offset after it.
const BY_ETHERTYPE: &[(u16, Header)] = &[
    (0x22f3, |walk, at| walk.trill(at)),
    (0x8847, |walk, at| walk.mpls(at)),
    (0x8848, |walk, at| walk.mpls(at)),
    (0x8864, |walk, at| walk.pppoe(at)),
    // FabricPath: a forwarding tag, which takes the place of the inner Ethertype
    (0x8903, |walk, at| walk.bridged(Tunnel::FabricPath, 0, at + 2)),
    // Cisco metadata: a version, the number of words with an option each
    (0x8909, |walk, at| walk.tag(at + 2 + 4 * usize::from(bytes::u8(walk.frame, at + 1)?))),
    // VN-Tag (802.1BR's predecessor), whose interfaces differ by direction
    (0x8926, |walk, at| walk.tag(at + 4)),
    (0x894f, |walk, at| walk.nsh(at)),
    (ETH_MACSEC, |walk, at| walk.macsec(at)),
    // PBB (802.1ah): flags and the I-SID
    (0x88e7, |walk, at| walk.bridged(Tunnel::Pbb, bytes::u32(walk.frame, at)? & 0xff_ffff, at + 4)),
    // R-TAG (802.1CB): reserved, a sequence number
    (0xf1c1, |walk, at| walk.tag(at + 4)),
];

/// Headers by IP protocol or IPv6 next header.
const BY_PROTOCOL: &[(u8, Header)] = &[
    (4, |walk, at| walk.in_ip(ETH_IPV4, at)),
    (41, |walk, at| walk.in_ip(ETH_IPV6, at)),
    (47, |walk, at| walk.gre(at)),
    // EtherIP (RFC 3378): a version
    (97, |walk, at| walk.bridged(Tunnel::EtherIp, 0, at + 2)),
    (PROTO_L2TP, |walk, at| walk.l2tp(at)),
    (137, |walk, at| walk.mpls(at)),
    // SRv6 (RFC 8986)
    (143, |walk, at| walk.bridged(Tunnel::Srv6, 0, at)),
];

/// Headers by UDP destination port; `at` is the offset after the UDP header.
const BY_PORT: &[(u16, Header)] = &[
    (2152, |walk, at| walk.gtp(at)),
    (4789, |walk, at| walk.vxlan(at)),
    (4790, |walk, at| walk.vxlan_gpe(at)),
    (6081, |walk, at| walk.geneve(at)),
    (6343, |walk, at| walk.sflow(at)),
    (6635, |walk, at| walk.mpls(at)),
    // what Linux took for VXLAN before IANA assigned 4789
    (8472, |walk, at| walk.vxlan(at)),
    (37008, |walk, at| walk.tzsp(at)),
];

pub(crate) const ETH_MACSEC: u16 = 0x88e5;
/// GRE's protocol types, in addition to Ethertypes.
const ETHERNET_BRIDGED: u16 = 0x6558;
const ERSPAN_I_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
/// Ethertypes up to here are lengths (802.3).
const MAX_LENGTH: u16 = 1500;
/// A sub-network access protocol header without an organisation (RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
/// Tunnels within tunnels: a bound keeps hostile frames cheap.
const MAX_DEPTH: u8 = 4;
const MAX_LABELS: usize = 16;

impl Walk<'_> {
    /// Notes a tunnel whose content begins at `at`; `None` if there are too many.
    pub(crate) fn enter(&mut self, tunnel: Tunnel, id: u32, at: usize) -> Option<()> {
        let packet = &mut *self.packet;
        if self.depth == 0 {
            packet.outer_off = packet.l3_off;
            self.tags_before = packet.vlans;
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.unread = Some(Layer::Depth);
            return None;
        }
        // tags between two tunnels count as tags
        let tags = 4 * usize::from(packet.vlans - self.tags_before);
        let len = at.checked_sub(usize::from(packet.outer_off) + tags)?;
        packet.tunnel_len = u16::try_from(len).ok()?;
        if tunnel != Tunnel::None {
            packet.segment = Segment { vlans: 0, tunnel, id };
        }
        Some(())
    }

    /// Ethernet in a tunnel.
    fn bridged(&mut self, tunnel: Tunnel, id: u32, at: usize) -> Option<Kind> {
        self.enter(tunnel, id, at)?;
        self.ethernet(at)
    }

    /// IP in IP.
    fn in_ip(&mut self, ethertype: u16, at: usize) -> Option<Kind> {
        self.enter(Tunnel::IpInIp, 0, at)?;
        self.network(ethertype, at)
    }

    /// A header before the Ethertype at `at` that does not say which network the packet belongs to: both
    /// directions of a connection need not have it.
    fn tag(&mut self, at: usize) -> Option<Kind> {
        let ethertype = bytes::u16(self.frame, at)?;
        let behind = at + 2;
        self.enter(Tunnel::None, 0, behind)?;
        let outer = self.packet.segment.vlans;
        let link = vlan_tags(self.frame, ethertype, behind)?;
        let vlans = if link.tags == 0 { outer } else { link.vlans };
        self.link(LinkLayer { vlans, ..link })
    }

    pub(crate) fn ethernet(&mut self, at: usize) -> Option<Kind> {
        let ethertype = bytes::u16(self.frame, at + 12)?;
        self.link(vlan_tags(self.frame, ethertype, at + 14)?)
    }

    /// IP without an Ethertype.
    pub(crate) fn ip(&mut self, at: usize) -> Option<Kind> {
        match bytes::u8(self.frame, at)? >> 4 {
            4 => self.network(ETH_IPV4, at),
            6 => self.network(ETH_IPV6, at),
            _ => None,
        }
    }

    /// What is directly above Ethernet or GRE.
    pub(crate) fn by_ethertype(&mut self, ethertype: u16, at: usize) -> Option<Kind> {
        if ethertype <= MAX_LENGTH {
            return if bytes::array(self.frame, at)? == SNAP { self.tag(at + 6) } else { None };
        }
        match BY_ETHERTYPE.iter().find(|(known, _)| *known == ethertype) {
            Some((_, header)) => header(self, at),
            None => {
                self.unread = Layer::of_ethertype(ethertype);
                None
            }
        }
    }

    /// What is directly above IP.
    pub(crate) fn by_protocol(&mut self, protocol: u8, at: usize) -> Option<Kind> {
        match BY_PROTOCOL.iter().find(|(known, _)| *known == protocol) {
            Some((_, header)) => header(self, at),
            None => {
                self.unread = Layer::of_protocol(protocol);
                None
            }
        }
    }

    /// What is in UDP; `at` is the offset after the UDP header.
    pub(crate) fn by_port(&mut self, port: u16, at: usize) -> Option<Kind> {
        let (_, header) = BY_PORT.iter().find(|(known, _)| *known == port)?;
        header(self, at)
    }

    /// RFC 7348.
    fn vxlan(&mut self, at: usize) -> Option<Kind> {
        let [flags, .., a, b, c, _] = bytes::array::<8>(self.frame, at)?;
        if flags & 0x08 == 0 {
            return None;
        }
        self.bridged(Tunnel::Vxlan, u32::from_be_bytes([0, a, b, c]), at + 8)
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
            4 => self.nsh(at + 8),
            _ => None,
        }
    }

    /// RFC 8300. The service path differs by direction, so it is no network.
    fn nsh(&mut self, at: usize) -> Option<Kind> {
        let [_, length, _, next] = bytes::array(self.frame, at)?;
        let words = usize::from(length & 0x3f);
        if words < 2 {
            return None;
        }
        let behind = at + 4 * words;
        self.enter(Tunnel::Nsh, 0, behind)?;
        match next {
            1 => self.network(ETH_IPV4, behind),
            2 => self.network(ETH_IPV6, behind),
            3 => self.ethernet(behind),
            4 => self.nsh(behind),
            5 => self.mpls(behind),
            _ => None,
        }
    }

    /// RFC 6325: flags, the number of option words and the hop count; two nicknames. Then Ethernet.
    fn trill(&mut self, at: usize) -> Option<Kind> {
        let words = usize::from(bytes::u16(self.frame, at)? >> 6 & 0x1f);
        self.bridged(Tunnel::Trill, 0, at + 6 + 4 * words)
    }

    /// IEEE 802.1AE, if it only protects the integrity; an ICV follows, which is a trailer.
    fn macsec(&mut self, at: usize) -> Option<Kind> {
        const ENCRYPTED: u8 = 0x08;
        const CHANGED: u8 = 0x04;
        const HAS_CHANNEL: u8 = 0x20;
        let control = bytes::u8(self.frame, at)?;
        if control & (ENCRYPTED | CHANGED) != 0 {
            self.unread = Layer::of_ethertype(ETH_MACSEC);
            return None;
        }
        self.tag(at + if control & HAS_CHANNEL == 0 { 6 } else { 14 })
    }

    /// 3GPP TS 29.281: user data of GTP version 1. Its tunnel identifier differs by direction.
    fn gtp(&mut self, at: usize) -> Option<Kind> {
        const VERSION_1: u8 = 0x30;
        const USER_DATA: u8 = 0xff;
        const EXTENDED: u8 = 0x04;
        const MAX_EXTENSIONS: usize = 8;
        let [flags, message, ..] = bytes::array::<8>(self.frame, at)?;
        if flags & 0xf0 != VERSION_1 || message != USER_DATA {
            return None;
        }
        let mut behind = at + 8;
        if flags & 0x07 != 0 {
            behind += 4;
            let mut next = bytes::u8(self.frame, behind - 1)?;
            let mut count = 0;
            while flags & EXTENDED != 0 && next != 0 {
                let words = usize::from(bytes::u8(self.frame, behind)?);
                count += 1;
                if words == 0 || count > MAX_EXTENSIONS {
                    return None;
                }
                behind += 4 * words;
                next = bytes::u8(self.frame, behind - 1)?;
            }
        }
        self.enter(Tunnel::GtpU, 0, behind)?;
        self.ip(behind)
    }

    /// L2TP version 3 over IP (RFC 3931): a session, then a cookie and a sublayer whose lengths only both ends
    /// know: Ethernet is where an IP header is in the right place behind it.
    fn l2tp(&mut self, at: usize) -> Option<Kind> {
        const LENGTHS: [usize; 4] = [0, 4, 8, 12];
        if bytes::u32(self.frame, at)? == 0 {
            return None;
        }
        let behind = LENGTHS.map(|len| at + 4 + len).into_iter().find(|&at| {
            let link = bytes::u16(self.frame, at + 12);
            let link = link.and_then(|ethertype| vlan_tags(self.frame, ethertype, at + 14));
            link.is_some_and(|link| match (link.ethertype, bytes::u8(self.frame, link.at)) {
                (ETH_IPV4, Some(first)) => first >> 4 == 4,
                (ETH_IPV6 | ETH_ROCE_V1, Some(first)) => first >> 4 == 6,
                _ => false,
            })
        });
        let Some(behind) = behind else {
            self.unread = Layer::of_protocol(PROTO_L2TP);
            return None;
        };
        self.bridged(Tunnel::L2tp, 0, behind)
    }

    /// TaZmen Sniffer Protocol: version, type, the link layer (1: Ethernet), tagged fields.
    fn tzsp(&mut self, at: usize) -> Option<Kind> {
        const MAX_FIELDS: usize = 32;
        const PADDING: u8 = 0;
        const END: u8 = 1;
        if !matches!(bytes::array(self.frame, at)?, [1, 0 | 1, 0, 1]) {
            return None;
        }
        let mut behind = at + 4;
        for _ in 0..MAX_FIELDS {
            match bytes::u8(self.frame, behind)? {
                END => return self.bridged(Tunnel::Tzsp, 0, behind + 1),
                PADDING => behind += 1,
                _ => behind += 2 + usize::from(bytes::u8(self.frame, behind + 1)?),
            }
        }
        None
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
