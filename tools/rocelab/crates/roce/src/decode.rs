// SPDX-License-Identifier: GPL-2.0-or-later
//! Decodes a captured frame into a [`Packet`]: link layer, VLANs, IP or GRH, UDP, BTH. Native
//! InfiniBand is in [`crate::infiniband`].

use crate::bytes;
use crate::header::{BTH_LEN, GRH_LEN, ICRC_LEN, UDP_LEN};
use crate::layer::Layer;
use crate::link::Link;
use crate::opcode::Class;
use crate::packet::{Net, Packet};
use crate::segment::mapped;

/// UDP destination port of RoCE v2 (IANA).
pub const ROCE_PORT: u16 = 4791;

pub(crate) const ETH_IPV4: u16 = 0x0800;
pub(crate) const ETH_IPV6: u16 = 0x86dd;
pub(crate) const ETH_ROCE_V1: u16 = 0x8915;
const ETH_MAC_CONTROL: u16 = 0x8808;
const ETH_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// QinQ uses two tags. The limit keeps hostile frames cheap.
const MAX_VLANS: u8 = 4;
pub(crate) const MAX_EXTENSIONS: u8 = 8;
const PFC_OPCODE: u16 = 0x0101;
const PAUSE_OPCODE: u16 = 0x0001;
pub(crate) const PROTO_UDP: u8 = 17;
/// An address family, which systems number differently: the IP header says the same.
const NULL_LEN: usize = 4;
const IPNET_LEN: usize = 24;
/// The next header of a v1 GRH: the InfiniBand transport.
pub(crate) const NEXT_HEADER_IBA: u8 = 0x1b;

/// A decoded frame.
#[derive(Clone, Copy, Debug)]
pub enum Frame {
    /// RoCE, with at least its whole BTH captured.
    Roce(Packet),
    /// RoCE by its outer headers, but cut before the end of the BTH.
    Cut,
    /// A priority flow control frame (IEEE 802.1Qbb) and its class-enable vector.
    Pfc(u8),
    /// An IEEE 802.3x PAUSE frame.
    Pause,
    /// What may be RoCE, to a UDP port that is not listed.
    OtherPort(u16),
    /// What may hold RoCE in a layer that is not looked into.
    Unread(Layer),
    /// A part of a UDP packet that IP has fragmented: see [`crate::Reassembly`].
    Fragment {
        /// It has the UDP port of RoCE.
        of_roce: bool,
    },
    /// Anything else.
    Other,
}

/// [`Frame`] without the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the same as Frame's")]
pub enum Kind {
    Roce,
    Cut {
        /// Bytes to capture of such a packet, so that its BTH is whole.
        needed: u32,
    },
    Pfc(u8),
    Pause,
    OtherPort(u16),
    Unread(Layer),
    Fragment {
        of_roce: bool,
    },
    Other,
}

/// UDP ports of RoCE v2.
#[derive(Clone, Debug, Default)]
pub struct Ports(Vec<u16>);

impl Ports {
    /// Port 4791 and `others`.
    #[must_use]
    pub fn with(others: &[u16]) -> Self {
        Self(others.to_vec())
    }

    #[inline]
    fn contains(&self, port: u16) -> bool {
        port == ROCE_PORT || self.0.contains(&port)
    }
}

/// Decodes a frame of `wire_len` bytes of which `bytes` were captured.
///
/// Never panics, and never guesses bytes that were not captured.
#[must_use]
pub fn decode(link: Link, bytes: &[u8], wire_len: u32, ports: &Ports) -> Frame {
    let mut packet = Packet::default();
    match decode_into(link, bytes, wire_len, ports, &mut packet) {
        Kind::Roce => Frame::Roce(packet),
        Kind::Cut { .. } => Frame::Cut,
        Kind::Pfc(classes) => Frame::Pfc(classes),
        Kind::Pause => Frame::Pause,
        Kind::OtherPort(port) => Frame::OtherPort(port),
        Kind::Unread(layer) => Frame::Unread(layer),
        Kind::Fragment { of_roce } => Frame::Fragment { of_roce },
        Kind::Other => Frame::Other,
    }
}

/// Like [`decode`], but writes to `packet`, which is valid only if the frame is [`Kind::Roce`].
#[inline]
pub fn decode_into(
    link: Link,
    bytes: &[u8],
    wire_len: u32,
    ports: &Ports,
    packet: &mut Packet,
) -> Kind {
    *packet = Packet { wire_len, ..Packet::default() };
    if link == Link::Ethernet && plain_ipv4(bytes, ports, packet) {
        return Kind::Roce;
    }
    decode_frame(link, bytes, ports, packet).unwrap_or(Kind::Other)
}

/// Ethernet, IPv4 and UDP header without tags, options and extensions, and the BTH.
const PLAIN: usize = 14 + 20 + UDP_LEN + BTH_LEN;

/// Decodes the most common frame at fixed offsets; [`decode_frame`] gives the same result, but slower.
#[inline]
fn plain_ipv4(frame: &[u8], ports: &Ports, packet: &mut Packet) -> bool {
    let Some(head) = frame.first_chunk::<PLAIN>() else { return false };
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let plain = word(12) == ETH_IPV4 && head[14] == 0x45 && head[23] == PROTO_UDP;
    if !plain || word(20) & 0x3fff != 0 || !ports.contains(word(36)) {
        return false;
    }
    packet.l3_off = 14;
    packet.net = Net::V2Ipv4;
    packet.src = mapped([head[26], head[27], head[28], head[29]]);
    packet.dst = mapped([head[30], head[31], head[32], head[33]]);
    packet.tclass = head[15];
    packet.hop_limit = head[22];
    packet.sport = word(34);
    let end = 34 + usize::from(word(38));
    packet.bad_length = end != 14 + usize::from(word(16));
    let Some(header) = head.last_chunk::<BTH_LEN>() else { return false };
    packet.bth_off = (PLAIN - BTH_LEN) as u16;
    transport(frame, header, end, packet);
    true
}

/// What the link layer says about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkLayer {
    pub(crate) ethertype: u16,
    /// Where the next header begins.
    pub(crate) at: usize,
    /// Number of VLAN tags.
    pub(crate) tags: u8,
    /// Their VLANs, see [`Segment::vlans`].
    pub(crate) vlans: u32,
}

#[inline]
pub(crate) fn link_layer(link: Link, frame: &[u8]) -> Option<LinkLayer> {
    let (ethertype, at) = match link {
        Link::Ethernet => (bytes::u16(frame, 12)?, 14),
        Link::LinuxSll => (bytes::u16(frame, 14)?, 16),
        Link::LinuxSll2 => (bytes::u16(frame, 0)?, 20),
        Link::RawIp => (ip_version(frame, 0)?, 0),
        Link::Null => (ip_version(frame, NULL_LEN)?, NULL_LEN),
        Link::Ipnet => (ip_version(frame, IPNET_LEN)?, IPNET_LEN),
        Link::Infiniband | Link::Erf | Link::Ppi | Link::Nflog | Link::Pktap | Link::Other(_) => {
            return None;
        }
    };
    match ethertype {
        ETH_IPV4 => Some(LinkLayer { ethertype, at, tags: 0, vlans: 0 }),
        _ => vlan_tags(frame, ethertype, at),
    }
}

/// The Ethertype of the IP header at `at`.
#[inline]
pub(crate) fn ip_version(frame: &[u8], at: usize) -> Option<u16> {
    match bytes::u8(frame, at)? >> 4 {
        4 => Some(ETH_IPV4),
        6 => Some(ETH_IPV6),
        _ => None,
    }
}

pub(crate) fn vlan_tags(frame: &[u8], mut ethertype: u16, mut at: usize) -> Option<LinkLayer> {
    let (mut tags, mut vlans) = (0, 0);
    while ETH_VLAN.contains(&ethertype) && tags < MAX_VLANS {
        let vlan = u32::from(bytes::u16(frame, at)? & 0xfff);
        vlans = (vlans << 12 | vlan) & 0xff_ffff;
        ethertype = bytes::u16(frame, at + 2)?;
        at += 4;
        tags += 1;
    }
    Some(LinkLayer { ethertype, at, tags, vlans })
}

#[inline(never)]
fn decode_frame(link: Link, frame: &[u8], ports: &Ports, packet: &mut Packet) -> Option<Kind> {
    let mut walk = Walk { frame, ports, packet, depth: 0, tags_before: 0, unread: None };
    if link == Link::Infiniband {
        return walk.lrh(0);
    }
    if let Link::Other(number) = link {
        return Some(Kind::Unread(Layer::Link(number)));
    }
    walk.link(link_layer(link, frame)?).or(walk.unread.map(Kind::Unread))
}

/// From header to header of a frame; tunnels are in [`crate::tunnel`].
pub(crate) struct Walk<'a> {
    pub(crate) frame: &'a [u8],
    pub(crate) ports: &'a Ports,
    pub(crate) packet: &'a mut Packet,
    /// Tunnels so far.
    pub(crate) depth: u8,
    /// VLAN tags before the first tunnel.
    pub(crate) tags_before: u8,
    /// What was not looked into.
    pub(crate) unread: Option<Layer>,
}

impl Walk<'_> {
    /// What follows a link layer.
    pub(crate) fn link(&mut self, link: LinkLayer) -> Option<Kind> {
        self.packet.vlans += link.tags;
        self.packet.segment.vlans = link.vlans;
        self.network(link.ethertype, link.at)
    }

    pub(crate) fn network(&mut self, ethertype: u16, at: usize) -> Option<Kind> {
        self.packet.l3_off = u16::try_from(at).ok()?;
        match ethertype {
            ETH_IPV4 => self.ipv4(at),
            ETH_IPV6 => self.ipv6(at),
            ETH_ROCE_V1 => grh(self.frame, at, self.packet),
            ETH_MAC_CONTROL if self.depth == 0 => match bytes::u16(self.frame, at)? {
                PFC_OPCODE => Some(Kind::Pfc(bytes::u8(self.frame, at + 3)?)),
                PAUSE_OPCODE => Some(Kind::Pause),
                _ => None,
            },
            _ => self.by_ethertype(ethertype, at),
        }
    }

    fn ipv4(&mut self, at: usize) -> Option<Kind> {
        let ip = self.frame.get(at..)?;
        let header: [u8; 20] = bytes::array(ip, 0)?;
        let len = usize::from(header[0] & 0xf) * 4;
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        if header[0] >> 4 != 4 || len < 20 {
            return None;
        }
        if fragment != 0 {
            return fragment_of(
                header[9],
                fragment & 0x1fff == 0,
                self.frame,
                at + len,
                self.ports,
            );
        }
        if header[9] != PROTO_UDP {
            return self.by_protocol(header[9], at + len);
        }
        let packet = &mut *self.packet;
        packet.net = Net::V2Ipv4;
        packet.src = mapped([header[12], header[13], header[14], header[15]]);
        packet.dst = mapped([header[16], header[17], header[18], header[19]]);
        packet.tclass = header[1];
        packet.hop_limit = header[8];
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        self.udp(at + len, at + total)
    }

    fn ipv6(&mut self, at: usize) -> Option<Kind> {
        let header: [u8; 40] = bytes::array(self.frame, at)?;
        if header[0] >> 4 != 6 {
            return None;
        }
        self.packet.net = Net::V2Ipv6;
        route(&header, self.packet);
        let end = at + 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
        let mut next = header[6];
        let mut l4 = at + 40;
        let mut extensions = 0;
        while next != PROTO_UDP {
            let extension = (bytes::u8(self.frame, l4), bytes::u8(self.frame, l4 + 1));
            l4 += match (next, extension) {
                // a fragment header may stand before a whole packet ("atomic fragment", RFC 6946)
                (44, (Some(inner), _)) => match bytes::u16(self.frame, l4 + 2)? & 0xfff9 {
                    0 => 8,
                    fragment => {
                        let first = fragment & 0xfff8 == 0;
                        return fragment_of(inner, first, self.frame, l4 + 8, self.ports);
                    }
                },
                (_, (_, Some(units))) => match extension_len(next, units) {
                    Some(len) => len,
                    None => return self.by_protocol(next, l4),
                },
                _ => return self.by_protocol(next, l4),
            };
            next = extension.0?;
            extensions += 1;
            if extensions > MAX_EXTENSIONS {
                return None;
            }
        }
        self.udp(l4, end)
    }

    fn udp(&mut self, at: usize, ip_end: usize) -> Option<Kind> {
        let port = bytes::u16(self.frame, at + 2)?;
        let listed = self.ports.contains(port);
        if !listed {
            if let Some(kind) = self.by_port(port, at + UDP_LEN) {
                return Some(kind);
            }
            if let Some(layer) = Layer::of_udp_port(port) {
                return Some(Kind::Unread(layer));
            }
        }
        self.packet.sport = bytes::u16(self.frame, at)?;
        let Some(len) = bytes::u16(self.frame, at + 4) else {
            return listed.then_some(cut(at + UDP_LEN));
        };
        let end = at + usize::from(len);
        self.packet.bad_length = end != ip_end;
        let kind = bth(self.frame, at + UDP_LEN, end, self.packet);
        match kind {
            _ if listed => kind,
            Some(Kind::Roce) if looks_like_roce(self.packet, end) => Some(Kind::OtherPort(port)),
            _ => None,
        }
    }
}

/// The length of an IPv6 extension header from the length in it; `None`: it is none.
pub(crate) fn extension_len(kind: u8, units: u8) -> Option<usize> {
    match kind {
        // hop-by-hop, routing, destination options, mobility, HIP, shim6
        0 | 43 | 60 | 135 | 139 | 140 => Some((usize::from(units) + 1) * 8),
        // authentication
        51 => Some((usize::from(units) + 2) * 4),
        _ => None,
    }
}

/// A fragment of an IP packet with this protocol, whose content is at `at`: of RoCE, if it is the first one
/// with the UDP port; of what may be RoCE, if it is UDP.
fn fragment_of(protocol: u8, first: bool, frame: &[u8], at: usize, ports: &Ports) -> Option<Kind> {
    let of_roce = first && bytes::u16(frame, at + 2).is_some_and(|port| ports.contains(port));
    (protocol == PROTO_UDP).then_some(Kind::Fragment { of_roce })
}

/// Whether a packet to a UDP port that is not listed may be RoCE: what the BTH leaves no choice in.
fn looks_like_roce(packet: &Packet, end: usize) -> bool {
    let len = end.checked_sub(usize::from(packet.bth_off));
    let whole = len.is_some_and(|len| len % 4 == 0);
    let fixed = packet.tver() == 0 && packet.pkey & 0x7fff == 0x7fff && packet.apsn & 0x7f == 0;
    whole && fixed && !packet.bad_length && packet.op().is_some()
}

/// The fields that an IPv6 header and a GRH share.
pub(crate) fn route(header: &[u8; 40], packet: &mut Packet) {
    packet.tclass = header[0] << 4 | header[1] >> 4;
    packet.hop_limit = header[7];
    if let (Some(src), Some(dst)) = (bytes::array(header, 8), bytes::array(header, 24)) {
        packet.src = src;
        packet.dst = dst;
    }
}

fn grh(frame: &[u8], at: usize, packet: &mut Packet) -> Option<Kind> {
    let Some(header) = bytes::array::<GRH_LEN>(frame, at) else {
        return Some(cut(at + GRH_LEN));
    };
    if header[0] >> 4 != 6 || header[6] != NEXT_HEADER_IBA {
        return None;
    }
    packet.net = Net::V1;
    route(&header, packet);
    let bth_off = at + GRH_LEN;
    let end = bth_off + usize::from(u16::from_be_bytes([header[4], header[5]]));
    bth(frame, bth_off, end, packet)
}

/// Decodes a BTH at `at`. `end` is the end of the ICRC by the length in the preceding header.
pub(crate) fn bth(frame: &[u8], at: usize, end: usize, packet: &mut Packet) -> Option<Kind> {
    let Some(header) = bytes::array::<BTH_LEN>(frame, at) else { return Some(cut(at)) };
    packet.bth_off = u16::try_from(at).ok()?;
    transport(frame, &header, end, packet);
    Some(Kind::Roce)
}

/// A frame that ends before the end of the BTH at `bth`.
pub(crate) const fn cut(bth: usize) -> Kind {
    Kind::Cut { needed: (bth + BTH_LEN) as u32 }
}

#[inline]
fn transport(frame: &[u8], header: &[u8; BTH_LEN], end: usize, packet: &mut Packet) {
    packet.opcode = header[0];
    packet.flags = header[1];
    packet.pkey = u16::from_be_bytes([header[2], header[3]]);
    packet.resv8a = header[4];
    packet.dqpn = u32::from_be_bytes([0, header[5], header[6], header[7]]);
    packet.apsn = header[8];
    packet.psn = u32::from_be_bytes([0, header[9], header[10], header[11]]);
    let op = packet.op();
    let headers = op.map_or(BTH_LEN, |op| usize::from(op.header_len));
    let payload_off = usize::from(packet.bth_off) + headers;
    let behind = ICRC_LEN + packet.pad() as usize;
    packet.payload_off = payload_off as u32;
    match end.checked_sub(payload_off + behind) {
        Some(len) => {
            packet.payload_len = len as u32;
            packet.complete = end <= frame.len();
        }
        None => packet.bad_length = true,
    }
    packet.bad_length |= end > packet.wire_len as usize;
    if op.is_some_and(|op| op.class == Class::Congestion) && packet.payload_len != 0 {
        packet.bad_length = true;
    }
}
