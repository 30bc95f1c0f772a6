// SPDX-License-Identifier: GPL-2.0-or-later
//! A capture, and what really happened.

/// The side of the tap on which something happened to a packet, as the packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before the tap.
    Before,
    /// Behind the tap.
    Behind,
}

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was lost.
    Lost,
    /// A packet that was sent later overtook it.
    Overtaken,
}

/// A packet that was lost or overtaken.
#[derive(Clone, Copy, Debug)]
pub struct Mishap {
    /// What happened.
    pub fate: Fate,
    /// Where.
    pub side: Side,
    /// Whether the requester at the first host sent it, or that host's responder: the direction.
    pub from_first: bool,
    /// Its opcode.
    pub opcode: u8,
    /// Its PSN.
    pub psn: u32,
    /// When its sender sent it, ns since 1970.
    pub sent_ns: i64,
    /// When it happened, ns since 1970.
    pub time_ns: i64,
}

/// Why a requester sends again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A NAK for a PSN sequence error.
    Nak,
    /// An RNR NAK.
    Rnr,
    /// A response that came after a gap: an implied NAK.
    ResponseGap,
    /// Its timer ran out.
    Timeout,
}

/// The first captured packet of what a requester sends again.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// When it was captured, ns since 1970.
    pub time_ns: i64,
    /// Its PSN.
    pub psn: u32,
    /// The capture had a later PSN by then, and not the one before it right before it: otherwise it looks
    /// like the next packet.
    pub passed: bool,
}

/// A requester sends again.
#[derive(Clone, Copy, Debug)]
pub struct Resend {
    /// Why.
    pub cause: Cause,
    /// From which PSN.
    pub psn: u32,
    /// When the captured frame that caused it was captured: the NAK or the response, ns since 1970.
    pub trigger_ns: Option<i64>,
    /// How long the timer ran, if it ran out, ns.
    pub waited_ns: i64,
    /// A response with this PSN was captured before its first packet.
    pub answered: bool,
    /// Its first captured packet.
    pub seen: Option<Seen>,
    /// Whether the requester at the first host does it.
    pub from_first: bool,
}

/// A capture, and what happened.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Time and bytes of each captured frame, in order. No two have the same time.
    pub frames: Vec<(i64, Vec<u8>)>,
    /// Every packet that was lost or overtaken.
    pub mishaps: Vec<Mishap>,
    /// Every time that a requester sent again.
    pub resends: Vec<Resend>,
    /// RNR NAKs in the capture.
    pub rnr_naks: u64,
    /// Damaged requests in the capture.
    pub corrupted: u64,
    /// Responses that the responder delayed.
    pub late: u64,
    /// When the last message was complete, ns since 1970.
    pub ended_ns: i64,
    /// The requesters completed all messages.
    pub complete: bool,
}

impl Trace {
    /// How long timers ran that the capture does not show: the sender had nothing outstanding in it, and what it
    /// sends again looks like its next request.
    #[must_use]
    pub fn hidden_ns(&self) -> i64 {
        let hidden = |one: &&Resend| !one.seen.is_some_and(|seen| seen.passed);
        self.resends.iter().filter(hidden).map(|one| one.waited_ns).sum()
    }

    /// Adds what the other requester of the connection did at the same time.
    pub(crate) fn join(&mut self, other: Self) {
        self.frames.extend(other.frames);
        self.frames.sort_by_key(|(time_ns, _)| *time_ns);
        self.mishaps.extend(other.mishaps);
        self.mishaps.sort_by_key(|one| one.time_ns);
        self.resends.extend(other.resends);
        self.rnr_naks += other.rnr_naks;
        self.corrupted += other.corrupted;
        self.late += other.late;
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.complete &= other.complete;
    }
}
