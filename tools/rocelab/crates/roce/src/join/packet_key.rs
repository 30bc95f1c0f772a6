// SPDX-License-Identifier: GPL-2.0-or-later
//! Identifies a packet at the sender, in the capture and at the receiver.

use std::hash::Hasher;

use crate::bytes;
use crate::header::BTH_LEN;
use crate::icrc;
use crate::opcode::Service;
use crate::packet::{Net, Packet};

/// A destination QP of all ones: multicast.
pub(super) const MULTICAST: u32 = 0x00ff_ffff;

/// The fields that identify a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Source address or GID.
    pub src: [u8; 16],
    /// Destination address or GID.
    pub dst: [u8; 16],
    /// Destination QP of the BTH.
    pub dqpn: u32,
    /// PSN of the BTH.
    pub psn: u32,
    /// Source QP of the DETH for UD, otherwise 0.
    pub sqpn: u32,
    /// BTH opcode.
    pub opcode: u8,
    /// RoCE v1, or v2 over IPv4 or IPv6.
    pub net: Net,
}

impl Key {
    /// The key of a decoded packet.
    #[must_use]
    pub fn of(packet: &Packet, frame: &[u8]) -> Self {
        let datagram = Service::of(packet.opcode) == Service::Ud;
        let sqpn = packet.deth(frame).filter(|_| datagram).map_or(0, |deth| deth.src_qp);
        Self {
            src: packet.src,
            dst: packet.dst,
            dqpn: packet.dqpn,
            psn: packet.psn,
            sqpn,
            opcode: packet.opcode,
            net: packet.net,
        }
    }
}

/// Distinguishes packets with the same key, by bytes that no switch or router changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Print {
    headers: u64,
    icrc: Option<u32>,
}

impl Print {
    /// The fingerprint of a decoded packet. It includes the ICRC as found: the network forwards even
    /// a wrong one unchanged.
    #[must_use]
    pub fn of(packet: &Packet, frame: &[u8]) -> Self {
        let mut hasher = Fnv::default();
        if packet.net == Net::V2Ipv4 {
            let id = bytes::u16(frame, usize::from(packet.l3_off) + 4);
            hasher.write(&id.unwrap_or_default().to_be_bytes());
        }
        hasher.write(&packet.sport.to_be_bytes());
        let at = usize::from(packet.bth_off);
        let end = at + packet.op().map_or(BTH_LEN, |op| usize::from(op.header_len));
        for (offset, byte) in frame.get(at..end).unwrap_or_default().iter().enumerate() {
            // switches set FECN and BECN
            hasher.write_u8(if offset == 4 { 0 } else { *byte });
        }
        let icrc = icrc::found(packet, frame);
        Self { headers: hasher.finish(), icrc }
    }

    pub(super) const fn without_icrc(self) -> Self {
        Self { headers: self.headers, icrc: None }
    }

    pub(super) const fn has_icrc(&self) -> bool {
        self.icrc.is_some()
    }
}

/// FNV-1a, 64 bit: the same in every run. A hostile collision only makes two packets look equal.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
