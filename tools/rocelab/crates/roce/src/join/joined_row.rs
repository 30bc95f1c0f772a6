// SPDX-License-Identifier: GPL-2.0-or-later
//! What the join gives out: one row a frame, and one for each record that has none.

use super::cause::{Received, Sent};
use super::packet_key::{Key, Print};
use super::stage_times::StageTimes;
use crate::finding::At;

/// A frame of the capture between the nodes.
#[derive(Clone, Copy, Debug)]
pub struct WireFrame {
    /// Where it lies, and its time on the capture's clock.
    pub at: At,
    /// Bytes on the wire.
    pub wire_len: u32,
    /// Message bytes.
    pub payload_len: u32,
    /// Its ICRC is wrong.
    pub bad: bool,
    pub(super) print: Print,
}

/// A record of a node's driver.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Where it lies, and its time on the node's clock.
    pub at: At,
    /// The node's name, as an index that the caller gave.
    pub node: u16,
    /// The device's.
    pub dev: u16,
    /// The local QP; absent where a packet was dropped before it met one.
    pub qpn: Option<u32>,
    /// Message bytes.
    pub payload_len: u32,
    /// What the driver spent.
    pub stages: StageTimes,
    /// Between the two parts of the record: hand-over and device, or arrival and queue.
    pub gap_ns: Option<u64>,
    /// The task was switched out in between.
    pub switched: bool,
    /// It never left its host.
    pub loopback: bool,
    /// Why the driver dropped it, as an index that the caller gave.
    pub drop: Option<u16>,
    pub(super) print: Print,
}

impl Record {
    /// It came to the driver, and no further.
    pub(super) const fn dropped_on_arrival(&self) -> bool {
        self.drop.is_some() && self.qpn.is_none()
    }
}

/// One packet, as far as the three places saw it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What names it.
    pub key: Key,
    /// The frame between the nodes.
    pub wire: Option<WireFrame>,
    /// The sender's record.
    pub tx: Option<Record>,
    /// The receiver's record.
    pub rx: Option<Record>,
    /// From the sender to the capture; absent when only the receiver's record is there.
    pub sent: Option<Sent>,
    /// From the capture to the receiver; absent when only the sender's record is there.
    pub received: Option<Received>,
    /// How often the sender's driver had sent this packet before: 0, or it is a retransmission.
    /// Without the sender's record, of how many other bytes the capture had seen it.
    pub again: u32,
}
