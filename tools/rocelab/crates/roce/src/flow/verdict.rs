// SPDX-License-Identifier: GPL-2.0-or-later
//! What the tracker says of single packets, for those who write it beside them.
//!
//! Some of it is known only later: how a run of repeated packets ends tells why they were sent
//! again, and a message has an end. Such packets name their run or message by its first packet, and
//! the word follows.

macro_rules! words {
    ($($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        /// What a packet's PSN is to its direction, as docs/formats/annotate.md has it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PsnStatus { $($(#[$doc])* $variant),* }

        impl PsnStatus {
            /// All of them, in the order of `as usize`.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// A word for files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

words! {
    /// A request with the PSN that had to come, or the first of its direction.
    New "new";
    /// A request with a PSN not used before, behind some that the capture lacks.
    Gap "gap";
    /// Sent again after a sequence NAK.
    AfterNak "retransmission_after_nak";
    /// Sent again after an RNR NAK.
    AfterRnr "retransmission_after_rnr";
    /// A READ issued again where a response is missing.
    AfterResponseGap "retransmission_after_response_gap";
    /// Sent again without a NAK.
    AfterTimeout "retransmission_after_timeout";
    /// Sent again though it was acknowledged before.
    Spurious "retransmission_spurious";
    /// Sent again, and the capture cannot tell why.
    Ambiguous "retransmission_ambiguous";
    /// The same packet twice: the sender did not go back.
    Duplicate "duplicate";
    /// Late, into a gap: the sender did not go back.
    OutOfOrder "out_of_order";
    /// Its bytes were changed on the way: the receiver does not take it.
    Corrupt "corrupt";
    /// A response to something that had none yet.
    Answer "answer";
    /// A READ response behind some that the capture lacks.
    AnswerGap "answer_gap";
    /// A response that acknowledges nothing new.
    AnswerAgain "answer_again";
    /// A response to a PSN that the capture has not seen sent.
    AnswerEarly "answer_early";
    /// A response whose requests were not captured, or not yet found.
    AnswerUnpaired "answer_unpaired";
    /// A NAK other than RNR.
    Nak "nak";
    /// An RNR NAK.
    RnrNak "rnr_nak";
}

/// One thing said of one packet. Packets are frame numbers of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its status.
    Status {
        /// Which packet.
        packet: u64,
        /// What it is.
        status: PsnStatus,
    },
    /// It belongs to a run of repeated packets, whose status follows.
    InRun {
        /// Which packet.
        packet: u64,
        /// The run's first packet.
        run: u64,
    },
    /// How a run ended.
    Run {
        /// Its first packet.
        run: u64,
        /// The status of all its packets.
        status: PsnStatus,
    },
    /// It answers a request; only where one copy of the request comes into question.
    Response {
        /// The response.
        packet: u64,
        /// The last packet of the request message.
        to: u64,
        /// From that to the response.
        ns: i64,
    },
    /// It is part of a message, whose end follows.
    InMessage {
        /// Which packet.
        packet: u64,
        /// The message's first packet.
        first: u64,
    },
    /// A message is whole.
    Message {
        /// Its first packet.
        first: u64,
        /// The packet with its last PSN.
        last: u64,
    },
}

/// Where verdicts go; nowhere, unless they are kept.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    pub(super) keep: bool,
    pub(super) list: Vec<Verdict>,
}

impl Verdicts {
    #[inline]
    pub(super) fn tell(&mut self, verdict: impl FnOnce() -> Verdict) {
        if self.keep {
            self.list.push(verdict());
        }
    }
}
