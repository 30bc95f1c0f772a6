// SPDX-License-Identifier: GPL-2.0-or-later
//! Verdicts on single packets, for the annotated copy of a capture.
//!
//! Some verdicts are known only later: how a retransmission ends decides its cause, and a message
//! ends with its last packet. Packets then refer to the first packet of their retransmission or
//! message, and the verdict on it follows.

macro_rules! words {
    ($($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        /// How the PSN of a packet fits its direction; docs/formats/annotate.md defines the values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PsnStatus { $($(#[$doc])* $variant),* }

        impl PsnStatus {
            /// All values, in the order of `as usize`.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

words! {
    /// A request with the expected PSN, or the first of its direction.
    New "new";
    /// A request with a new PSN after a gap.
    Gap "gap";
    /// Retransmitted after a NAK with a PSN sequence error.
    AfterNak "retransmission_after_nak";
    /// Retransmitted after an RNR NAK.
    AfterRnr "retransmission_after_rnr";
    /// A READ reissued from a missing response.
    AfterResponseGap "retransmission_after_response_gap";
    /// Retransmitted without a NAK.
    AfterTimeout "retransmission_after_timeout";
    /// Retransmitted although it was acknowledged.
    Spurious "retransmission_spurious";
    /// Retransmitted; the capture does not show why.
    Ambiguous "retransmission_ambiguous";
    /// Captured twice: the sender did not go back.
    Duplicate "duplicate";
    /// Late, and fills a gap: the sender did not go back.
    OutOfOrder "out_of_order";
    /// Corrupted in transit: the receiver discards it.
    Corrupt "corrupt";
    /// The first response to a request.
    Answer "answer";
    /// A READ response after a gap.
    AnswerGap "answer_gap";
    /// A response that acknowledges nothing new.
    AnswerAgain "answer_again";
    /// A response to a PSN that was not captured yet.
    AnswerEarly "answer_early";
    /// A response whose requests were not captured or not yet paired.
    AnswerUnpaired "answer_unpaired";
    /// A NAK other than RNR.
    Nak "nak";
    /// An RNR NAK.
    RnrNak "rnr_nak";
}

/// A verdict on one packet. Packets are frame numbers of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The status of the packet.
    Status {
        /// The packet.
        packet: u64,
        /// Its status.
        status: PsnStatus,
    },
    /// The packet belongs to a retransmission, whose status follows.
    Retransmitted {
        /// The packet.
        packet: u64,
        /// The first packet of the retransmission.
        first: u64,
    },
    /// The status of a retransmission.
    Retransmission {
        /// Its first packet.
        first: u64,
        /// The status of all its packets.
        status: PsnStatus,
    },
    /// The packet answers a request, of which only one copy was captured.
    Response {
        /// The response.
        packet: u64,
        /// The last packet of the request message.
        to: u64,
        /// The time from the request to the response.
        ns: i64,
    },
    /// The packet belongs to a message, whose end follows.
    InMessage {
        /// The packet.
        packet: u64,
        /// The first packet of the message.
        first: u64,
    },
    /// A message is complete.
    Message {
        /// Its first packet.
        first: u64,
        /// The packet with its last PSN.
        last: u64,
    },
}

/// Collects verdicts, if they are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdicts {
    pub(super) keep: bool,
    pub(super) list: Vec<Verdict>,
}

impl Verdicts {
    #[inline]
    pub(super) fn add(&mut self, verdict: impl FnOnce() -> Verdict) {
        if self.keep {
            self.list.push(verdict());
        }
    }
}
