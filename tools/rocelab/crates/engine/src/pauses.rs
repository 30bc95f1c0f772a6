// SPDX-License-Identifier: GPL-2.0-or-later
//! Who paused the link, which classes, and for how long: PFC (IEEE 802.1Qbb) and PAUSE (802.3x).

use std::collections::BTreeMap;

use roce::finding::At;
use roce::{Kind, Link};

use crate::ethernet::{Ethernet, Mac, u16_at};

const CLASSES: usize = 8;
/// Senders and classes that are kept; what others send is counted by `Totals` alone.
const MAX_KEYS: usize = 1024;

/// Bits of a quantum, and bits per ns of the slowest link.
const QUANTUM_BITS: i64 = 512;
const SLOWEST: i64 = 10;

/// A flow control frame: a time in quanta for each class that it names. 0 ends a pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PauseFrame {
    at: At,
    source: Mac,
    /// `None`: 802.3x, which pauses the whole link, with the first element.
    classes: Option<u8>,
    quanta: [u16; CLASSES],
}

impl PauseFrame {
    /// Reads a frame of this kind; `None` if it is another, or cut.
    pub(crate) fn of(kind: Kind, link: Link, frame: &[u8], at: At) -> Option<Self> {
        if link != Link::Ethernet {
            return None;
        }
        let header = Ethernet::of(frame)?;
        let mut quanta = [0; CLASSES];
        let classes = match kind {
            Kind::Pause => {
                quanta[0] = u16_at(frame, header.payload + 2)?;
                None
            }
            Kind::Pfc(classes) => {
                for (class, quanta) in quanta.iter_mut().enumerate() {
                    *quanta = u16_at(frame, header.payload + 4 + 2 * class)?;
                }
                Some(classes)
            }
            _ => return None,
        };
        Some(Self { at, source: header.source, classes, quanta })
    }

    /// What it asks for: sender and class as a number, from when and until when, ns since 1970. No link of RoCE
    /// is slower than [`SLOWEST`], so the pause ends by then.
    pub(crate) fn times(&self) -> impl Iterator<Item = (u64, i64, i64)> + '_ {
        let [a, b, c, d, e, f] = self.source;
        let source = u64::from_be_bytes([0, 0, a, b, c, d, e, f]) << 4;
        // class 8 is the whole link
        let classes = self.classes.map_or(1 << 8, u16::from);
        (0..=8).filter(move |class| classes >> class & 1 == 1).map(move |class| {
            let quanta = self.quanta.get(class % 8).copied().unwrap_or(0);
            let ns = i64::from(quanta) * QUANTUM_BITS / SLOWEST;
            (source | class as u64, self.at.time_ns, self.at.time_ns.saturating_add(ns))
        })
    }
}

/// What one sender asked for one class.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// The first such frame.
    pub first: At,
    /// Time of the last one, ns since 1970.
    pub last_ns: i64,
    /// Frames that pause.
    pub xoff: u64,
    /// Frames that end a pause.
    pub xon: u64,
    /// The sum of what was asked for; a quantum is 512 bit times of the link.
    pub quanta: u64,
    /// From the first XOFF to the XON that ends the pause, summed: no pause was longer, and it was
    /// shorter where its quanta ran out before.
    pub paused_at_most_ns: u64,
    /// Since when the class is paused.
    since_ns: Option<i64>,
}

impl Pause {
    fn add(&mut self, time_ns: i64, quanta: u16) {
        self.last_ns = time_ns;
        if quanta > 0 {
            self.xoff += 1;
            self.quanta += u64::from(quanta);
            self.since_ns = self.since_ns.or(Some(time_ns));
        } else {
            self.xon += 1;
            if let Some(since_ns) = self.since_ns.take() {
                self.paused_at_most_ns += time_ns.abs_diff(since_ns);
            }
        }
    }
}

/// All senders and classes; `None` is the whole link.
#[derive(Debug, Default)]
pub struct Pauses(BTreeMap<(Mac, Option<u8>), Pause>);

impl Pauses {
    pub(crate) fn add(&mut self, frame: &PauseFrame) {
        match frame.classes {
            None => self.one(frame, None, frame.quanta[0]),
            Some(classes) => {
                for (class, quanta) in (0..).zip(frame.quanta) {
                    if classes >> class & 1 == 1 {
                        self.one(frame, Some(class), quanta);
                    }
                }
            }
        }
    }

    fn one(&mut self, frame: &PauseFrame, class: Option<u8>, quanta: u16) {
        let key = (frame.source, class);
        if self.0.len() >= MAX_KEYS && !self.0.contains_key(&key) {
            return;
        }
        let new = Pause {
            first: frame.at,
            last_ns: frame.at.time_ns,
            xoff: 0,
            xon: 0,
            quanta: 0,
            paused_at_most_ns: 0,
            since_ns: None,
        };
        self.0.entry(key).or_insert(new).add(frame.at.time_ns, quanta);
    }

    /// By sender and class.
    pub fn iter(&self) -> impl Iterator<Item = (Mac, Option<u8>, &Pause)> {
        self.0.iter().map(|((source, class), pause)| (*source, *class, pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: Mac = [2, 0, 0, 0, 0, 1];

    fn frame(classes: u16, quanta: &[u16]) -> Vec<u8> {
        let mut frame = [&[1, 0x80, 0xc2, 0, 0, 1][..], &SWITCH, &[0x88, 8, 1, 1]].concat();
        frame.extend(classes.to_be_bytes());
        frame.extend(quanta.iter().flat_map(|one| one.to_be_bytes()));
        frame
    }

    fn told(frames: &[(i64, Vec<u8>, Kind)]) -> Vec<(Option<u8>, u64, u64, u64, u64)> {
        let mut pauses = Pauses::default();
        for (time_ns, frame, kind) in frames {
            let at = At { time_ns: *time_ns, ..At::default() };
            if let Some(frame) = PauseFrame::of(*kind, Link::Ethernet, frame, at) {
                pauses.add(&frame);
            }
        }
        pauses
            .iter()
            .map(|(source, class, pause)| {
                assert_eq!(source, SWITCH);
                (class, pause.xoff, pause.xon, pause.quanta, pause.paused_at_most_ns)
            })
            .collect()
    }

    #[test]
    fn a_pause_lasts_from_the_first_xoff_to_the_xon() {
        let (off, on) = ([0, 0, 0, 100, 7, 0, 0, 0], [0; 8]);
        let pfc = |time_ns, classes: u8, quanta: &[u16]| {
            (time_ns, frame(u16::from(classes), quanta), Kind::Pfc(classes))
        };
        let frames =
            [pfc(1000, 0x18, &off), pfc(1500, 8, &off), pfc(3000, 8, &on), pfc(4000, 8, &on)];
        // class 4 is never resumed, and the second XON ends nothing
        assert_eq!(told(&frames), [(Some(3), 2, 2, 200, 2000), (Some(4), 1, 0, 7, 0)]);
    }

    #[test]
    fn a_cut_frame_says_nothing() {
        let mut cut = frame(8, &[0; 8]);
        cut.truncate(30);
        assert!(told(&[(0, cut, Kind::Pfc(8))]).is_empty());
    }

    #[test]
    fn a_plain_pause_is_of_the_link() {
        let mut pause = frame(65535, &[0; 8]);
        pause[15] = 1;
        pause[14] = 0;
        assert_eq!(told(&[(5, pause, Kind::Pause)]), [(None, 1, 0, 65535, 0)]);
    }
}
