// SPDX-License-Identifier: GPL-2.0-or-later
//! What the tracker reports of a whole message.

use crate::finding::At;
use crate::packet::Net;

/// A message that was complete, and then refused or given up.
#[derive(Clone, Copy, Debug)]
pub struct Withdrawn {
    /// Its connection.
    pub connection: u32,
    /// Its last packet.
    pub at: At,
    /// Payload, bytes.
    pub bytes: u32,
}

/// A whole message.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Its connection.
    pub connection: u32,
    /// Sent by side a.
    pub from_a: bool,
    /// Opcode of its last packet.
    pub opcode: u8,
    /// Its encapsulation.
    pub net: Net,
    /// PSN of its first packet.
    pub psn: u32,
    /// Packets, without retransmissions.
    pub packets: u32,
    /// Their frames: IP fragments of a packet are several.
    pub frames: u32,
    /// Payload, bytes.
    pub bytes: u64,
    /// Bytes on the wire, without retransmissions.
    pub wire_bytes: u64,
    /// Its first packet.
    pub first: At,
    /// Its last packet.
    pub last: At,
}
