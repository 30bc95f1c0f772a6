// SPDX-License-Identifier: GPL-2.0-or-later
//! What a simulated connection does, apart from what its seed draws.

/// How the two ends recover from losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// IBA volume 1, 9.7: the responder discards what follows a missing packet and sends one NAK, the
    /// requester goes back.
    #[default]
    GoBackN,
    /// The responder keeps what follows and sends one NAK for each missing packet, and the requester
    /// sends only this packet again. After a timeout it goes back.
    SelectiveRepeat,
    /// Improved RoCE NIC (Mittal et al., SIGCOMM 2018): the responder keeps what follows and sends a NAK
    /// for each packet that comes after a gap. The requester learns from each NAK which packet caused
    /// it, and sends again what is missing before that.
    Irn,
}

/// What the seed does not choose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// Messages.
    pub messages: usize,
    /// Lost packets in 1000, on each of the four ways between an end and the tap: requester to tap, tap
    /// to responder, responder to tap, tap to requester.
    pub lost: [u64; 4],
    /// RNR NAKs in 1000 messages that need a receive buffer.
    pub rnr: u64,
    /// Requests in 1000 that are damaged between the requester and the tap.
    pub corrupted: u64,
    /// Responses in 1000 that the responder delays, and by how much, ns.
    pub late: (u64, i64),
    /// What happens to a packet depends on its PSN and how often it was sent before, not on what happened
    /// until then: one plan more or less changes nothing else.
    pub by_packet: bool,
    /// How losses are repaired.
    pub recovery: Recovery,
    /// Paths on each of the four ways. A packet takes any of them, and they differ in length: with more
    /// than one, packets overtake each other (adaptive routing).
    pub paths: [u64; 4],
    /// The ends know of the paths and use another UDP source port for each (multi-path senders).
    pub ports: bool,
    /// The responder waits for this many packets after a gap before it sends a NAK.
    pub patience: usize,
    /// The responder of this connection sends requests too: a second requester, other way round.
    pub duplex: bool,
}
