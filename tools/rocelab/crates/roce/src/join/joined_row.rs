// SPDX-License-Identifier: GPL-2.0-or-later
//! The rows of a join: one per frame, and one per record without a frame.

use super::cause::{Received, Sent};
use super::packet_key::{Key, Print};
use super::stage_times::StageTimes;
use crate::finding::At;

/// A frame of the capture between the nodes.
#[derive(Clone, Copy, Debug)]
pub struct WireFrame {
    /// Its place in the capture, and its time by the capture's clock.
    pub at: At,
    /// Bytes on the wire.
    pub wire_len: u32,
    /// Message bytes.
    pub payload_len: u32,
    /// Whether its ICRC is wrong.
    pub bad: bool,
    pub(super) print: Print,
}

/// A driver's record of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Its place in the trace, and its time by the node's clock.
    pub at: At,
    /// The node: the index from [`Place`](super::Place).
    pub node: u16,
    /// The device: the index from `Place`.
    pub dev: u16,
    /// The local QP; absent if the packet was dropped before its QP was looked up.
    pub qpn: Option<u32>,
    /// Message bytes.
    pub payload_len: u32,
    /// Time in the driver.
    pub stages: StageTimes,
    /// Time between the two parts of the record: hand-over and device, or arrival and queue.
    pub gap_ns: Option<u64>,
    /// Whether the task was switched out in between.
    pub switched: bool,
    /// Whether it never left its host.
    pub loopback: bool,
    /// Why the driver dropped it: the index from `Place`.
    pub drop: Option<u16>,
    pub(super) print: Print,
}

impl Record {
    /// Whether the driver dropped it before it reached a QP.
    pub(super) const fn dropped_on_arrival(&self) -> bool {
        self.drop.is_some() && self.qpn.is_none()
    }
}

/// One packet as seen by the sender, the capture and the receiver.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Identifies the packet.
    pub key: Key,
    /// The frame between the nodes.
    pub wire: Option<WireFrame>,
    /// The sender's record.
    pub tx: Option<Record>,
    /// The receiver's record.
    pub rx: Option<Record>,
    /// From the sender to the capture; absent if there is only the receiver's record.
    pub sent: Option<Sent>,
    /// From the capture to the receiver; absent if there is only the sender's record.
    pub received: Option<Received>,
    /// How often the sender's driver had sent this packet before; above 0 it is a retransmission.
    /// Without the sender's record: how many frames with other bytes the capture had seen of it.
    pub again: u32,
}
