// SPDX-License-Identifier: GPL-2.0-or-later
//! Sums over packets in any order: each batch has its own, and they are merged at the end.

use std::collections::BTreeMap;

use roce::icrc::Signs;
use roce::opcode;
use roce::{
    BTH_LEN, Frame, GRH_LEN, Header, ICRC_LEN, Icrc, Kind, LRH_LEN, Layer, Link, Net, Packet,
    Ports, UDP_LEN, Whole, icrc,
};

use crate::fragments::Joined;

/// Preamble and start delimiter 8, FCS 4, gap 12 bytes (IEEE 802.3).
pub const ETHERNET_EXTRA: u64 = 24;
const CLASSES: usize = 8;
/// Ports that hints name.
const MAX_HINTS: usize = 16;

/// The fields of a packet that the sums depend on. A capture alternates between few of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shape {
    lengths: (u32, u32),
    /// Network header, BTH, tunnels.
    offsets: (u16, u16, u16),
    opcode: u8,
    tclass: u8,
    vlans: u8,
    pad: u8,
    net: Net,
    icrc: Icrc,
    without_icrc: bool,
}

impl Shape {
    #[inline]
    fn of(packet: &Packet) -> Self {
        Self {
            lengths: (packet.wire_len, packet.payload_len),
            offsets: (packet.l3_off, packet.bth_off, packet.tunnel_len),
            opcode: packet.opcode,
            tclass: packet.tclass,
            vlans: packet.vlans,
            pad: packet.pad() as u8,
            net: packet.net,
            icrc: packet.icrc,
            without_icrc: packet.without_icrc,
        }
    }
}

const SHAPES: usize = 8;

/// Counts of packets and bytes; complete after [`Totals::settle`].
#[derive(Clone, Debug)]
pub struct Totals {
    /// Recent shapes by opcode, and how many of their packets are not yet counted below.
    shapes: [(Shape, u64); SHAPES],
    /// Frames read.
    pub packets: u64,
    /// Bytes of these frames on the wire.
    pub bytes: u64,
    /// Frames that were not captured completely.
    pub truncated: u64,
    /// RoCE by the outer headers, but cut before the end of the BTH.
    pub cut: u64,
    /// Bytes to capture of each packet so that none of them is.
    pub snap_needed: u32,
    /// Frames that are neither RoCE nor flow control.
    pub other: u64,
    /// RoCE packets by [`Net`].
    pub roce: [u64; Net::ALL.len()],
    /// RoCE packets with VLAN tags.
    pub vlan: u64,
    /// RoCE packets in tunnels.
    pub tunneled: u64,
    /// Packets to UDP ports that are not listed, with a BTH and a correct ICRC, by port.
    pub other_ports: BTreeMap<u16, u64>,
    /// The same with a wrong ICRC, which prove nothing where others are right.
    pub unproven_ports: BTreeMap<u16, u64>,
    /// IP fragments of UDP.
    pub fragments: u64,
    /// How many of them have the UDP port of RoCE.
    pub roce_fragments: u64,
    /// How many of the packets that have these were put together from their fragments.
    pub whole: u64,
    /// How many of [`Self::roce`] were put together from fragments, and these fragments.
    pub reassembled: u64,
    /// See [`Self::reassembled`].
    pub joined_fragments: u64,
    /// How many of [`Self::reassembled`] have an ICRC that another identification or DF flag explains.
    pub of_other_header: u64,
    /// What fragments have on the wire in addition to the whole packets.
    fragment_headers: u64,
    /// Packets by layer that was not looked into, and how many of them were found to hold RoCE.
    pub unread: BTreeMap<Layer, (u64, u64)>,
    /// ICRCs: unchecked, correct, wrong.
    pub icrc: [u64; 3],
    /// Packets by index in the opcode table.
    pub opcodes: Vec<u64>,
    /// Packets with opcodes that the specification does not define, by opcode.
    pub unknown: Vec<u64>,
    /// Packets by ECN codepoint.
    pub ecn: [u64; 4],
    /// Packets by DSCP.
    pub dscp: Vec<u64>,
    /// Priority flow control frames.
    pub pfc: u64,
    /// How many of them enable each class.
    pub pfc_classes: [u64; CLASSES],
    /// 802.3x PAUSE frames.
    pub pause: u64,
    /// RoCE bytes on the wire.
    pub wire_bytes: u64,
    /// Message bytes.
    pub payload_bytes: u64,
    /// What the lengths show about all ICRCs.
    pub absence: Signs,
    without_icrc: u64,
    link: u64,
    vlan_bytes: u64,
    tunnel_bytes: u64,
    ip: [u64; Net::ALL.len()],
    padding: u64,
    trailer: u64,
    malformed: u64,
    well_formed: [u64; Net::ALL.len()],
    /// Like `opcodes`, without packets of inconsistent lengths.
    headers: Vec<u64>,
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            shapes: [(Shape::default(), 0); SHAPES],
            packets: 0,
            bytes: 0,
            truncated: 0,
            cut: 0,
            snap_needed: 0,
            other: 0,
            roce: [0; Net::ALL.len()],
            vlan: 0,
            icrc: [0; 3],
            opcodes: vec![0; opcode::all().len()],
            unknown: vec![0; 256],
            ecn: [0; 4],
            dscp: vec![0; 64],
            pfc: 0,
            pfc_classes: [0; CLASSES],
            pause: 0,
            wire_bytes: 0,
            payload_bytes: 0,
            absence: Signs::default(),
            without_icrc: 0,
            link: 0,
            vlan_bytes: 0,
            tunnel_bytes: 0,
            tunneled: 0,
            other_ports: BTreeMap::new(),
            unproven_ports: BTreeMap::new(),
            fragments: 0,
            roce_fragments: 0,
            whole: 0,
            reassembled: 0,
            joined_fragments: 0,
            of_other_header: 0,
            fragment_headers: 0,
            unread: BTreeMap::new(),
            ip: [0; Net::ALL.len()],
            padding: 0,
            trailer: 0,
            malformed: 0,
            well_formed: [0; Net::ALL.len()],
            headers: vec![0; opcode::all().len()],
        }
    }
}

fn add(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

fn add_counts(to: &mut BTreeMap<u16, u64>, from: &BTreeMap<u16, u64>) {
    for (&key, &count) in from {
        *to.entry(key).or_default() += count;
    }
}

impl Totals {
    /// Counts RoCE packets with the fields of this one.
    #[inline]
    pub fn roce(&mut self, packet: &Packet, count: u64) {
        let shape = Shape::of(packet);
        let slot = &mut self.shapes[usize::from(packet.opcode) % SHAPES];
        if slot.0 == shape {
            slot.1 += count;
        } else {
            let (before, counted) = std::mem::replace(slot, (shape, count));
            self.add(before, counted);
        }
    }

    /// Counts a RoCE packet that was put together from fragments, and that the filter admits or not.
    pub(crate) fn joined(&mut self, one: &Joined, admitted: bool) {
        let Whole { fragments, wire_bytes, of_roce, wire_len, .. } = one.whole;
        // in a tunnel that was fragmented, only the whole packet shows it
        self.roce_fragments += u64::from(!of_roce);
        self.whole += 1;
        if !admitted {
            return;
        }
        self.roce(&one.packet, 1);
        self.absence.add(&one.packet, &one.whole.frame);
        self.reassembled += 1;
        self.joined_fragments += u64::from(fragments);
        self.of_other_header += u64::from(one.of_other_header);
        let more = wire_bytes.saturating_sub(wire_len.into());
        self.fragment_headers += more;
        self.wire_bytes += more;
    }

    /// Frames of RoCE packets: fragments of one are several.
    #[must_use]
    pub fn roce_frames(&self) -> u64 {
        self.roce.iter().sum::<u64>() - self.reassembled + self.joined_fragments
    }

    /// Counts the packets that are pending in `shapes`.
    pub fn settle(&mut self) {
        for (shape, count) in std::mem::take(&mut self.shapes) {
            self.add(shape, count);
        }
    }

    fn add(&mut self, shape: Shape, count: u64) {
        if count == 0 {
            return;
        }
        let net = shape.net as usize;
        self.roce[net] += count;
        self.vlan += if shape.vlans > 0 { count } else { 0 };
        self.icrc[match shape.icrc {
            Icrc::Unchecked => 0,
            Icrc::Ok => 1,
            Icrc::Bad => 2,
        }] += count;
        self.ecn[usize::from(shape.tclass & 3)] += count;
        self.dscp[usize::from(shape.tclass >> 2)] += count;
        let op = opcode::lookup(shape.opcode);
        match op {
            Some(op) => self.opcodes[op.index()] += count,
            None => self.unknown[usize::from(shape.opcode)] += count,
        }
        let (wire_len, payload_len) = shape.lengths;
        let (l3_off, bth_off, tunnel_len) = shape.offsets;
        self.wire_bytes += count * u64::from(wire_len);
        let headers = op.map_or(BTH_LEN, |op| usize::from(op.header_len));
        let icrc = if shape.without_icrc { 0 } else { ICRC_LEN };
        let behind = usize::from(bth_off) + headers + usize::from(shape.pad) + icrc;
        let Some(trailer) = u64::from(wire_len).checked_sub(behind as u64 + u64::from(payload_len))
        else {
            self.malformed += count * u64::from(wire_len);
            return;
        };
        if let Some(op) = op {
            self.headers[op.index()] += count;
        }
        let tags = 4 * u64::from(shape.vlans);
        self.well_formed[net] += count;
        self.vlan_bytes += count * tags;
        self.without_icrc += if shape.without_icrc { count } else { 0 };
        let tunnel = u64::from(tunnel_len);
        self.tunneled += if tunnel > 0 { count } else { 0 };
        self.tunnel_bytes += count * tunnel;
        self.link += count * (u64::from(l3_off) - tags - tunnel);
        self.ip[net] += count * u64::from(bth_off - l3_off);
        self.payload_bytes += count * u64::from(payload_len);
        self.padding += count * u64::from(shape.pad);
        self.trailer += count * trailer;
    }

    /// Counts a frame that is not a RoCE packet.
    pub fn not_roce(&mut self, kind: Kind) {
        match kind {
            Kind::Cut { needed } => {
                self.cut += 1;
                self.snap_needed = self.snap_needed.max(needed);
            }
            Kind::Pfc(classes) => self.pfc(classes),
            Kind::Pause => self.pause += 1,
            Kind::Unread(layer) => {
                self.other += 1;
                self.unread.entry(layer).or_default().0 += 1;
            }
            Kind::Fragment { of_roce } => {
                self.other += 1;
                self.fragments += 1;
                self.roce_fragments += u64::from(of_roce);
            }
            Kind::Roce | Kind::OtherPort(_) | Kind::Other => self.other += 1,
        }
    }

    /// Counts a packet of a layer that is not looked into if RoCE is in it.
    pub fn seek(&mut self, layer: Layer, frame: &[u8]) {
        if roce::holds_roce(frame) {
            self.unread.entry(layer).or_default().1 += 1;
        }
    }

    /// Counts a packet to an unlisted port by its ICRC.
    pub fn hint(&mut self, port: u16, link: Link, frame: &[u8], wire_len: u32) {
        let decoded = roce::decode(link, frame, wire_len, &Ports::with(&[port]));
        let Frame::Roce(packet) = decoded else { return };
        let ports = match icrc::check(&packet, frame) {
            Icrc::Ok => &mut self.other_ports,
            Icrc::Bad => &mut self.unproven_ports,
            Icrc::Unchecked => return,
        };
        if ports.len() < MAX_HINTS || ports.contains_key(&port) {
            *ports.entry(port).or_default() += 1;
        }
    }

    /// Counts a PFC frame by its class-enable vector.
    pub fn pfc(&mut self, classes: u8) {
        self.pfc += 1;
        for (class, count) in self.pfc_classes.iter_mut().enumerate() {
            *count += u64::from(classes >> class & 1);
        }
    }

    /// Adds other sums, which must be settled.
    pub fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.truncated += other.truncated;
        self.cut += other.cut;
        self.snap_needed = self.snap_needed.max(other.snap_needed);
        self.other += other.other;
        add(&mut self.roce, &other.roce);
        self.vlan += other.vlan;
        add(&mut self.icrc, &other.icrc);
        add(&mut self.opcodes, &other.opcodes);
        add(&mut self.unknown, &other.unknown);
        add(&mut self.ecn, &other.ecn);
        add(&mut self.dscp, &other.dscp);
        self.pfc += other.pfc;
        add(&mut self.pfc_classes, &other.pfc_classes);
        self.pause += other.pause;
        self.wire_bytes += other.wire_bytes;
        self.payload_bytes += other.payload_bytes;
        self.absence.merge(other.absence);
        self.without_icrc += other.without_icrc;
        self.link += other.link;
        self.vlan_bytes += other.vlan_bytes;
        self.tunnel_bytes += other.tunnel_bytes;
        self.tunneled += other.tunneled;
        add_counts(&mut self.other_ports, &other.other_ports);
        add_counts(&mut self.unproven_ports, &other.unproven_ports);
        self.fragments += other.fragments;
        self.roce_fragments += other.roce_fragments;
        self.whole += other.whole;
        self.reassembled += other.reassembled;
        self.joined_fragments += other.joined_fragments;
        self.of_other_header += other.of_other_header;
        self.fragment_headers += other.fragment_headers;
        for (&layer, &(packets, with_roce)) in &other.unread {
            let sum = self.unread.entry(layer).or_default();
            *sum = (sum.0 + packets, sum.1 + with_roce);
        }
        add(&mut self.ip, &other.ip);
        self.padding += other.padding;
        self.trailer += other.trailer;
        self.malformed += other.malformed;
        add(&mut self.well_formed, &other.well_formed);
        add(&mut self.headers, &other.headers);
    }

    /// Bytes by kind of header; with the payload they add up to `wire_bytes`.
    #[must_use]
    pub fn by_header(&self) -> Vec<(&'static str, u64)> {
        let [v1, v2_ipv4, v2_ipv6, native] = self.well_formed;
        let lrh = native * LRH_LEN as u64;
        let udp = UDP_LEN as u64;
        let all = v1 + v2_ipv4 + v2_ipv6 + native;
        let mut rows = vec![
            ("link", self.link),
            ("vlan", self.vlan_bytes),
            ("tunnel", self.tunnel_bytes),
            ("lrh", lrh),
            ("grh", v1 * GRH_LEN as u64 + self.ip[Net::Infiniband as usize] - lrh),
            ("ipv4", self.ip[Net::V2Ipv4 as usize] - v2_ipv4 * udp),
            ("ipv6", self.ip[Net::V2Ipv6 as usize] - v2_ipv6 * udp),
            ("udp", (v2_ipv4 + v2_ipv6) * udp),
            ("bth", all * BTH_LEN as u64),
        ];
        for header in Header::ALL {
            let count: u64 = opcode::all()
                .iter()
                .filter(|op| op.offset(header).is_some())
                .map(|op| self.headers[op.index()])
                .sum();
            rows.push((header.key(), count * header.size() as u64));
        }
        rows.extend([
            ("padding", self.padding),
            ("icrc", (all - self.without_icrc) * ICRC_LEN as u64),
            ("fragmentation", self.fragment_headers),
            ("trailer", self.trailer),
            ("malformed", self.malformed),
        ]);
        rows.retain(|&(_, bytes)| bytes > 0);
        rows
    }
}
