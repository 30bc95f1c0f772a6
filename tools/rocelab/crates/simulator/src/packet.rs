// SPDX-License-Identifier: GPL-2.0-or-later
//! A packet between the two ends.

/// What an end reads of a packet, and what the simulation knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Packet {
    pub(crate) opcode: u8,
    pub(crate) psn: u32,
    pub(crate) ack_req: bool,
    pub(crate) syndrome: u8,
    /// Bytes that a READ asks for.
    pub(crate) len: u32,
    /// The PSN that caused a NAK; only [`crate::Recovery::Irn`] reads it.
    pub(crate) because: u32,
    /// When it was captured.
    pub(crate) tap_ns: i64,
    /// The number of the [`crate::Resend`] to which it belongs.
    pub(crate) resend: Option<usize>,
    pub(crate) sent_ns: i64,
    /// Packets of its direction before it.
    pub(crate) serial: u64,
    pub(crate) late: bool,
    /// How often it was sent before.
    pub(crate) copy: u64,
    /// It was damaged: the receiver discards it.
    pub(crate) corrupt: bool,
}
