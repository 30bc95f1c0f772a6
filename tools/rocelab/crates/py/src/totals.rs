// SPDX-License-Identifier: GPL-2.0-or-later
//! Sums over packets that need no order: each block has its own, added up afterwards.

use roce::opcode::{self, Header};
use roce::{BTH_LEN, GRH_LEN, ICRC_LEN, Icrc, Net, Packet, UDP_LEN};

/// Preamble and start delimiter 8, FCS 4, gap 12 bytes (IEEE 802.3).
pub const ETHERNET_EXTRA: u64 = 24;
const CLASSES: usize = 8;

/// Counts of packets and bytes.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Frames read.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Frames of which not all bytes were captured.
    pub truncated: u64,
    /// RoCE by its outer headers, but cut before the end of the BTH.
    pub cut: u64,
    /// Frames that are neither RoCE nor flow control.
    pub other: u64,
    /// RoCE packets by [`Net`].
    pub roce: [u64; 3],
    /// RoCE packets with VLAN tags.
    pub vlan: u64,
    /// ICRCs: unchecked, right, wrong.
    pub icrc: [u64; 3],
    /// Packets by index of the opcode table.
    pub opcodes: Vec<u64>,
    /// Packets by code, of opcodes that the specification does not define.
    pub unknown: Vec<u64>,
    /// Packets by ECN codepoint.
    pub ecn: [u64; 4],
    /// Packets by DSCP.
    pub dscp: Vec<u64>,
    /// Priority flow control frames, and how often each class was named.
    pub pfc: u64,
    /// Per class.
    pub pfc_classes: [u64; CLASSES],
    /// 802.3x PAUSE frames.
    pub pause: u64,
    /// RoCE bytes on the wire.
    pub wire_bytes: u64,
    /// Message bytes.
    pub payload_bytes: u64,
    link: u64,
    vlan_bytes: u64,
    ip: [u64; 3],
    padding: u64,
    trailer: u64,
    malformed: u64,
    well_formed: [u64; 3],
    /// Like `opcodes`, without packets whose lengths do not fit.
    headers: Vec<u64>,
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            packets: 0,
            bytes: 0,
            truncated: 0,
            cut: 0,
            other: 0,
            roce: [0; 3],
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
            link: 0,
            vlan_bytes: 0,
            ip: [0; 3],
            padding: 0,
            trailer: 0,
            malformed: 0,
            well_formed: [0; 3],
            headers: vec![0; opcode::all().len()],
        }
    }
}

fn add(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

impl Totals {
    /// Count a RoCE packet.
    #[inline]
    pub fn roce(&mut self, packet: &Packet) {
        let net = packet.net as usize;
        self.roce[net] += 1;
        self.vlan += u64::from(packet.vlans > 0);
        self.icrc[match packet.icrc {
            Icrc::Unchecked => 0,
            Icrc::Ok => 1,
            Icrc::Bad => 2,
        }] += 1;
        self.ecn[usize::from(packet.ecn())] += 1;
        self.dscp[usize::from(packet.dscp())] += 1;
        let op = packet.op();
        match op {
            Some(op) => self.opcodes[op.index()] += 1,
            None => self.unknown[usize::from(packet.opcode)] += 1,
        }
        self.wire_bytes += u64::from(packet.wire_len);
        let behind = packet.icrc_off() + ICRC_LEN;
        let Some(trailer) = (packet.wire_len as usize).checked_sub(behind) else {
            self.malformed += u64::from(packet.wire_len);
            return;
        };
        if let Some(op) = op {
            self.headers[op.index()] += 1;
        }
        let tags = 4 * u64::from(packet.vlans);
        self.well_formed[net] += 1;
        self.vlan_bytes += tags;
        self.link += u64::from(packet.l3_off) - tags;
        self.ip[net] += u64::from(packet.bth_off - packet.l3_off);
        self.payload_bytes += u64::from(packet.payload_len);
        self.padding += u64::from(packet.pad());
        self.trailer += trailer as u64;
    }

    /// Count a PFC frame's class-enable vector.
    pub fn pfc(&mut self, classes: u8) {
        self.pfc += 1;
        for (class, count) in self.pfc_classes.iter_mut().enumerate() {
            *count += u64::from(classes >> class & 1);
        }
    }

    /// Add another block's sums.
    pub fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.truncated += other.truncated;
        self.cut += other.cut;
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
        self.link += other.link;
        self.vlan_bytes += other.vlan_bytes;
        add(&mut self.ip, &other.ip);
        self.padding += other.padding;
        self.trailer += other.trailer;
        self.malformed += other.malformed;
        add(&mut self.well_formed, &other.well_formed);
        add(&mut self.headers, &other.headers);
    }

    /// Bytes by header kind; with the payload they sum up to `wire_bytes`.
    #[must_use]
    pub fn by_header(&self) -> Vec<(&'static str, u64)> {
        let [v1, v2_ipv4, v2_ipv6] = self.well_formed;
        let udp = UDP_LEN as u64;
        let all = v1 + v2_ipv4 + v2_ipv6;
        let mut rows = vec![
            ("link", self.link),
            ("vlan", self.vlan_bytes),
            ("grh", v1 * GRH_LEN as u64),
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
            ("icrc", all * ICRC_LEN as u64),
            ("trailer", self.trailer),
            ("malformed", self.malformed),
        ]);
        rows.retain(|&(_, bytes)| bytes > 0);
        rows
    }
}
