// SPDX-License-Identifier: GPL-2.0-or-later
//! Builds RoCE v2 frames over IPv4 from the specification's fields, with a correct ICRC.

/// RC opcodes (IBA volume 1, table 38).
#[expect(missing_docs, reason = "the names are the specification's")]
pub mod opcode {
    pub const SEND_FIRST: u8 = 0x00;
    pub const SEND_MIDDLE: u8 = 0x01;
    pub const SEND_LAST: u8 = 0x02;
    pub const SEND_ONLY: u8 = 0x04;
    pub const WRITE_FIRST: u8 = 0x06;
    pub const WRITE_MIDDLE: u8 = 0x07;
    pub const WRITE_LAST: u8 = 0x08;
    pub const WRITE_ONLY: u8 = 0x0a;
    pub const READ_REQUEST: u8 = 0x0c;
    pub const READ_RESPONSE_FIRST: u8 = 0x0d;
    pub const READ_RESPONSE_MIDDLE: u8 = 0x0e;
    pub const READ_RESPONSE_LAST: u8 = 0x0f;
    pub const READ_RESPONSE_ONLY: u8 = 0x10;
    pub const ACKNOWLEDGE: u8 = 0x11;
    pub const ATOMIC_ACKNOWLEDGE: u8 = 0x12;
    pub const FETCH_ADD: u8 = 0x14;
}

/// Syndrome of an ACK without credits (IBA volume 1, 9.7.5.1.2.1).
pub const ACK: u8 = 0x1f;
/// Syndrome of a NAK with a PSN sequence error.
pub const NAK_SEQUENCE: u8 = 0x60;
/// Timer code 12: 0.64 ms (table 45).
pub(crate) const RNR_TIMER: (u8, i64) = (12, 640_000);

/// Syndrome of an RNR NAK with this timer code.
#[must_use]
pub const fn rnr_nak(timer: u8) -> u8 {
    0x20 | (timer & 0x1f)
}

/// A packet as its sender builds it.
#[derive(Clone, Debug)]
pub struct Transport {
    /// BTH opcode.
    pub opcode: u8,
    /// Destination QP.
    pub dqpn: u32,
    /// Packet sequence number.
    pub psn: u32,
    /// The requester asks for an acknowledgement.
    pub ack_req: bool,
    /// Extended headers, in wire order.
    pub headers: Vec<u8>,
    /// Message bytes.
    pub payload: Vec<u8>,
}

impl Transport {
    /// A packet without extended headers and payload.
    #[must_use]
    pub fn new(opcode: u8, dqpn: u32, psn: u32) -> Self {
        let (headers, payload) = (Vec::new(), Vec::new());
        Self { opcode, dqpn, psn: psn & 0xff_ffff, ack_req: false, headers, payload }
    }

    /// Adds an AETH.
    #[must_use]
    pub fn aeth(mut self, syndrome: u8, msn: u32) -> Self {
        self.headers.push(syndrome);
        self.headers.extend(&msn.to_be_bytes()[1..]);
        self
    }

    /// Adds a RETH.
    #[must_use]
    pub fn reth(mut self, va: u64, rkey: u32, len: u32) -> Self {
        self.headers.extend(va.to_be_bytes());
        self.headers.extend(rkey.to_be_bytes());
        self.headers.extend(len.to_be_bytes());
        self
    }

    /// Adds the ATOMICETH of a FETCH_ADD.
    #[must_use]
    pub fn fetch_add(mut self, va: u64, rkey: u32) -> Self {
        self.headers.extend(va.to_be_bytes());
        self.headers.extend(rkey.to_be_bytes());
        self.headers.extend(1_u64.to_be_bytes());
        self.headers.extend([0; 8]);
        self
    }

    /// Adds the ATOMICACKETH of an atomic response.
    #[must_use]
    pub fn original(mut self, value: u64) -> Self {
        self.headers.extend(value.to_be_bytes());
        self
    }

    /// Sets the payload: this many bytes that depend on the PSN.
    #[must_use]
    pub fn payload(mut self, len: u32) -> Self {
        self.payload = (0..len).map(|at| (at ^ self.psn) as u8).collect();
        self
    }

    /// Sets AckReq.
    #[must_use]
    pub fn ack_req(mut self) -> Self {
        self.ack_req = true;
        self
    }
}

/// A host's IPv4 address and the UDP source port of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The last byte of 10.0.0.0/24.
    pub number: u8,
    /// UDP source port.
    pub port: u16,
}

impl Host {
    /// A host with the usual source port.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self { number, port: 0xc000 }
    }

    /// The same host with another source port.
    #[must_use]
    pub const fn with_port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    const fn address(self) -> [u8; 4] {
        [10, 0, 0, self.number]
    }
}

/// The Ethernet frame of a packet, without FCS. `id` is the IPv4 identification.
#[must_use]
pub fn ethernet(from: Host, to: Host, id: u16, packet: &Transport) -> Vec<u8> {
    let pad = packet.payload.len().wrapping_neg() % 4;
    let bth_and_more = 12 + packet.headers.len() + packet.payload.len() + pad + 4;
    let udp_len = (8 + bth_and_more) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend((20 + udp_len).to_be_bytes());
    ip.extend(id.to_be_bytes());
    ip.extend([0x40, 0, 64, 17, 0, 0]);
    ip.extend(from.address());
    ip.extend(to.address());
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());

    let mut frame = vec![2, 0, 0, 0, 0, to.number, 2, 0, 0, 0, 0, from.number, 0x08, 0x00];
    frame.extend(&ip);
    frame.extend(from.port.to_be_bytes());
    frame.extend(4791_u16.to_be_bytes());
    frame.extend(udp_len.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend([packet.opcode, (pad as u8) << 4, 0xff, 0xff, 0]);
    frame.extend(&packet.dqpn.to_be_bytes()[1..]);
    frame.push(if packet.ack_req { 0x80 } else { 0 });
    frame.extend(&packet.psn.to_be_bytes()[1..]);
    frame.extend(&packet.headers);
    frame.extend(&packet.payload);
    frame.resize(frame.len() + pad, 0);
    let icrc = icrc(&frame[14..]);
    frame.extend(icrc.to_le_bytes());
    frame
}

/// The ICRC of an IPv4 packet without options (annex A17.3.3).
fn icrc(packet: &[u8]) -> u32 {
    let mut masked = vec![0xff; 8];
    masked.extend(packet);
    // type of service, TTL, header checksum, UDP checksum, FECN and BECN
    for at in [1, 8, 10, 11, 26, 27, 32] {
        masked[8 + at] = 0xff;
    }
    crc32fast::hash(&masked)
}
