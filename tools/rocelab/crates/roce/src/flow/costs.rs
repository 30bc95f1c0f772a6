// SPDX-License-Identifier: GPL-2.0-or-later
//! What delayed a sender, and how long: each disturbance from when its packet was first sent until it was
//! sent again, or answered. No time is charged twice.

use crate::finding::At;
use crate::histogram::Histogram;

/// Episodes that are kept of each cost: the longest.
const KEPT: usize = 4;
/// A silence of less is not worth telling.
const MIN_SILENCE_NS: u64 = 20_000;
/// An answer is late if it takes so many times as long as the fastest, and [`MIN_SILENCE_NS`] more.
const LATE: u64 = 4;
/// An idle time is long if it takes so many times as long as the fastest answer.
const LONG: u64 = 16;
/// The shortest long idle time.
const MIN_LONG_NS: u64 = 200_000;

/// What went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trouble {
    /// Packets were lost between the requester and the capture point.
    LossNear,
    /// Packets were lost between the capture point and the responder.
    LossFar,
    /// Packets were lost, and nothing shows where.
    #[default]
    Loss,
    /// A packet was captured corrupted: it was damaged between the requester and the capture point.
    Corrupted,
    /// Packets overtook each other.
    Reordered,
    /// The responder had posted no receive buffer.
    NotReady,
    /// The responder, or the path behind the capture point, answered late.
    Late,
    /// The sender was paused by flow control.
    Paused,
}

impl Trouble {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LossNear => "loss_near",
            Self::LossFar => "loss_far",
            Self::Loss => "loss",
            Self::Corrupted => "corrupted",
            Self::Reordered => "reordered",
            Self::NotReady => "not_ready",
            Self::Late => "late",
            Self::Paused => "paused",
        }
    }
}

/// What ended the trouble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Sent again after a NAK, or an RNR NAK.
    Nak,
    /// Sent again from a missing response on.
    Response,
    /// Sent again when a timer ran out.
    Timeout,
    /// Sent again although it was acknowledged.
    Needless,
    /// It ended by itself.
    #[default]
    None,
}

impl Repair {
    /// The name in files; `None`: it ended by itself.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Nak => Some("nak"),
            Self::Response => Some("response"),
            Self::Timeout => Some("timeout"),
            Self::Needless => Some("needless"),
            Self::None => None,
        }
    }
}

/// One time that something went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Episode {
    /// The file of its packets.
    pub file: u16,
    /// The packet that shows it: a NAK, the packet after a gap, or the last one before a silence.
    pub packet: u64,
    /// The packet that ended it.
    pub until: u64,
    /// How long it took.
    pub ns: u64,
}

/// What a kind of trouble cost.
#[derive(Clone, Debug)]
pub struct Cost {
    /// What went wrong.
    pub trouble: Trouble,
    /// How it was repaired.
    pub repair: Repair,
    /// The sum of the times.
    pub ns: u64,
    /// The shortest time.
    pub least_ns: u64,
    /// How often.
    pub count: u64,
    /// How often of these the capture does not prove the cause.
    pub unsure: u64,
    /// Messages that were delayed.
    pub messages: u64,
    /// The longest episodes, longest first.
    pub episodes: Vec<Episode>,
}

/// A time to charge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    pub(super) trouble: Trouble,
    pub(super) repair: Repair,
    pub(super) sure: bool,
    pub(super) ns: u64,
    pub(super) messages: u64,
    pub(super) shown: At,
    pub(super) until: At,
}

/// All costs of a sender; there is none where nothing went wrong.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    /// By trouble and repair, in the order in which they occurred first.
    pub rows: Vec<Cost>,
    /// From the first copy of a request to its response, of messages that were sent again.
    pub delayed: Histogram,
}

impl Costs {
    pub(super) fn add(&mut self, charge: Charge) {
        let Charge { trouble, repair, sure, ns, messages, shown, until } = charge;
        let same = |one: &Cost| (one.trouble, one.repair) == (trouble, repair);
        let index = self.rows.iter().position(same).unwrap_or_else(|| {
            self.rows.push(Cost {
                trouble,
                repair,
                ns: 0,
                least_ns: u64::MAX,
                count: 0,
                unsure: 0,
                messages: 0,
                episodes: Vec::new(),
            });
            self.rows.len() - 1
        });
        let Some(row) = self.rows.get_mut(index) else { return };
        row.ns = row.ns.saturating_add(ns);
        row.least_ns = row.least_ns.min(ns);
        row.count += 1;
        row.unsure += u64::from(!sure);
        row.messages += messages;
        let place = row.episodes.partition_point(|one| one.ns >= ns);
        if place < KEPT {
            row.episodes.truncate(KEPT - 1);
            let episode =
                Episode { file: until.file, packet: shown.packet, until: until.packet, ns };
            row.episodes.insert(place, episode);
        }
    }
}

/// How a sender's time passed while nothing went wrong.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Nothing was outstanding until it sent the next message, and flow control did not pause it.
    pub idle_ns: u64,
    /// Something was outstanding, and nothing was sent until the answer came; without what is late.
    pub waiting_ns: u64,
    /// The shortest time from the last packet of a message to its response; `u64::MAX`: unknown.
    pub fastest_ns: u64,
    /// Most messages that waited for a response at once.
    pub most_messages: u32,
    /// When a response last acknowledged something, ns since 1970; `i64::MIN`: never.
    answered_ns: i64,
    /// The longest idle time, if one is long.
    pub longest_idle: Option<Episode>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            idle_ns: 0,
            waiting_ns: 0,
            fastest_ns: u64::MAX,
            most_messages: 0,
            answered_ns: i64::MIN,
            longest_idle: None,
        }
    }
}

impl Pace {
    /// When a response last acknowledged something, ns since 1970.
    pub(super) const fn answered_ns(&self) -> Option<i64> {
        if self.answered_ns == i64::MIN { None } else { Some(self.answered_ns) }
    }

    /// Takes the end of an idle time; if it is long, only its length is returned. `since_ns`: the sender's last
    /// packet of any kind.
    #[inline]
    pub(super) fn note_idle(&mut self, since_ns: i64, now_ns: i64) -> Option<u64> {
        let idle = now_ns.saturating_sub(since_ns.max(self.answered_ns));
        let idle = u64::try_from(idle).unwrap_or(0);
        if idle > MIN_LONG_NS && self.fastest_ns < idle / LONG {
            return Some(idle);
        }
        self.idle_ns += idle;
        None
    }

    /// Takes a long idle time that ends with a packet.
    #[cold]
    pub(super) fn note_long_idle(&mut self, ns: u64, until: At) {
        self.idle_ns += ns;
        if self.longest_idle.is_none_or(|longest| longest.ns < ns) {
            let At { file, packet, .. } = until;
            self.longest_idle = Some(Episode { file, packet, until: packet, ns });
        }
    }

    /// Takes a response that acknowledges something new. `since_ns`: the last request; `newest_ns`: that of the
    /// newest message that it answers, if it was sent only once. Returns by how much it is late.
    #[inline]
    pub(super) fn note_answer(
        &mut self,
        since_ns: i64,
        newest_ns: Option<i64>,
        now_ns: i64,
    ) -> Option<u64> {
        let silent = now_ns.saturating_sub(since_ns.max(self.answered_ns));
        let silent = u64::try_from(silent).unwrap_or(0);
        self.answered_ns = self.answered_ns.max(now_ns);
        let late = self.is_long(silent).then(|| silent - self.fastest_ns);
        self.waiting_ns += silent - late.unwrap_or(0);
        if let Some(ns) = newest_ns {
            let turn = u64::try_from(now_ns.saturating_sub(ns)).unwrap_or(0);
            self.fastest_ns = self.fastest_ns.min(turn);
        }
        late
    }

    /// Whether a silence is much longer than the fastest answer takes.
    #[inline]
    pub(super) const fn is_long(&self, silent: u64) -> bool {
        silent > MIN_SILENCE_NS && self.fastest_ns < (silent - MIN_SILENCE_NS) / LATE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(trouble: Trouble, ns: u64, packet: u64) -> Charge {
        let at = |packet| At { packet, ..At::default() };
        let (repair, sure, messages) = (Repair::Nak, packet % 2 == 0, 3);
        let (shown, until) = (at(packet), at(packet + 1));
        Charge { trouble, repair, sure, ns, messages, shown, until }
    }

    #[test]
    fn the_longest_episodes_are_kept() {
        let mut costs = Costs::default();
        for (ns, packet) in [(5, 1), (9, 2), (1, 3), (7, 4), (9, 5), (2, 6)] {
            costs.add(charge(Trouble::LossFar, ns, packet));
        }
        costs.add(charge(Trouble::NotReady, 1, 9));
        let [loss, not_ready] = &costs.rows[..] else { panic!("two rows") };
        let kept: Vec<_> = loss.episodes.iter().map(|one| (one.ns, one.packet)).collect();
        assert_eq!(kept, [(9, 2), (9, 5), (7, 4), (5, 1)]);
        assert_eq!((loss.ns, loss.count, loss.unsure, loss.messages), (33, 6, 3, 18));
        assert_eq!((loss.least_ns, not_ready.count), (1, 1));
    }

    #[test]
    fn an_answer_is_late_by_what_the_fastest_takes_less() {
        let mut pace = Pace::default();
        assert_eq!(pace.note_answer(0, Some(0), 500_000), None, "nothing to compare with");
        assert_eq!(pace.note_answer(600_000, Some(600_000), 605_000), None);
        assert_eq!(pace.note_answer(700_000, Some(700_000), 900_000), Some(195_000));
        assert_eq!((pace.waiting_ns, pace.fastest_ns), (510_000, 5000));
    }

    #[test]
    fn what_the_sender_says_in_between_is_no_stall() {
        let mut pace = Pace::default();
        pace.note_answer(0, Some(0), 5000);
        assert_eq!(pace.note_idle(0, 1_005_000), Some(1_000_000));
        assert_eq!(pace.note_idle(2_000_000, 2_010_000), None);
        assert_eq!(pace.idle_ns, 10_000);
    }
}
