// SPDX-License-Identifier: GPL-2.0-or-later
//! `--filter`: addresses and times select what is analysed, the other terms what is listed.

use roce::Packet;

/// The addresses that share a prefix.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    address: u128,
    mask: u128,
}

impl Network {
    /// The network of `address` (IPv4 is mapped) with a prefix of `bits`, at most 128.
    #[must_use]
    pub fn new(address: [u8; 16], bits: u8) -> Self {
        let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
        Self { address: u128::from_be_bytes(address) & mask, mask }
    }

    /// Whether the address is in the network.
    #[must_use]
    #[inline]
    pub fn contains(&self, address: [u8; 16]) -> bool {
        u128::from_be_bytes(address) & self.mask == self.address
    }
}

/// Empty lists select everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Networks of either end.
    pub networks: Vec<Network>,
    /// From and to, ns after the first packet.
    pub time_ns: Option<(i64, i64)>,
    /// Destination QPs, and source QPs of datagrams.
    pub qpns: Vec<u32>,
    /// Opcodes.
    pub opcodes: Vec<u8>,
    /// Numbers of connections.
    pub connections: Vec<u32>,
    begin_ns: i64,
}

impl Filter {
    /// Sets the time of the first packet.
    pub fn begin(&mut self, time_ns: i64) {
        self.begin_ns = time_ns;
    }

    /// Whether every packet is analysed.
    #[must_use]
    pub fn admits_all(&self) -> bool {
        self.networks.is_empty() && self.time_ns.is_none()
    }

    /// Whether the packet is analysed.
    #[must_use]
    #[inline]
    pub fn admits(&self, packet: &Packet, time_ns: i64) -> bool {
        let in_one = |address| self.networks.iter().any(|network| network.contains(address));
        (self.networks.is_empty() || in_one(packet.src) || in_one(packet.dst))
            && self.time_ns.is_none_or(|(from, to)| {
                (from..to).contains(&time_ns.saturating_sub(self.begin_ns))
            })
    }

    /// Whether the packet is listed.
    #[must_use]
    pub fn lists(&self, packet: &Packet, frame: &[u8], connection: Option<u32>) -> bool {
        let qpn = self.qpns.is_empty()
            || self.qpns.contains(&packet.dqpn)
            || packet.deth(frame).is_some_and(|deth| self.qpns.contains(&deth.src_qp));
        qpn && (self.opcodes.is_empty() || self.opcodes.contains(&packet.opcode))
            && (self.connections.is_empty()
                || connection.is_some_and(|id| self.connections.contains(&id)))
    }
}
