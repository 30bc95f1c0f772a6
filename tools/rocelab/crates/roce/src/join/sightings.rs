// SPDX-License-Identifier: GPL-2.0-or-later
//! The frames and records with one key, and which of them belong together.

use super::cause::{Received, Sent};
use super::joined_row::{Record, Row, WireFrame};
use super::packet_key::{Key, MULTICAST, Print};
use super::stage_times::START_XMIT;

/// What the traces cover at the two ends of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ends {
    pub(super) sender: End,
    pub(super) receiver: End,
}

/// One end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    pub(super) traced: bool,
    /// The probe may have skipped such packets.
    pub(super) left_out: bool,
    /// Records that the probe lost, by its own account.
    pub(super) lost: u64,
    /// Lost records that do not yet account for a frame.
    pub(super) left: u64,
}

#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) wire: Vec<WireFrame>,
    pub(super) tx: Vec<Record>,
    pub(super) rx: Vec<Record>,
}

/// Indexes of a group's frames and records with the same bytes.
#[derive(Default)]
struct Class {
    print: Print,
    wire: Vec<usize>,
    tx: Vec<usize>,
    rx: Vec<usize>,
}

/// What is known about one frame so far.
#[derive(Clone, Copy, Default)]
struct Match {
    tx: Option<usize>,
    rx: Option<usize>,
    sent: Option<Sent>,
    received: Option<Received>,
    /// The record of the packet that it duplicates.
    copy_of: Option<usize>,
}

impl Group {
    pub(super) fn len(&self) -> usize {
        self.wire.len() + self.tx.len() + self.rx.len()
    }

    /// The place of its first frame, or else of its first record.
    pub(super) fn first(&self) -> (u16, u64) {
        let at = self.wire.first().map(|frame| frame.at);
        let at = at.or_else(|| self.tx.first().or(self.rx.first()).map(|record| record.at));
        at.map_or((u16::MAX, u64::MAX), |at| (at.file, at.packet))
    }

    /// Whether each frame has both its records.
    pub(super) fn is_whole(&self) -> bool {
        self.wire.len() == self.tx.len() && self.wire.len() == self.rx.len()
    }

    /// Matches frames and records and appends the rows. Each frame that a lost record accounts for
    /// decrements `ends.sender.left`.
    pub(super) fn resolve(mut self, key: Key, ends: &mut Ends, out: &mut Vec<Row>) {
        self.wire.sort_by_key(|frame| frame.at.packet);
        self.tx.sort_by_key(|record| (record.at.time_ns, record.at.packet));
        self.rx.sort_by_key(|record| (record.at.time_ns, record.at.packet));
        let mut solver = Solver {
            key,
            matches: vec![Match::default(); self.wire.len()],
            sent: vec![None; self.tx.len()],
            received: vec![None; self.rx.len()],
            unseen: Vec::new(),
            group: &self,
        };
        for class in solver.classes() {
            solver.send(&class);
            solver.receive(&class);
            solver.leftovers(&class);
        }
        solver.damaged();
        solver.emit(ends, out);
    }
}

struct Solver<'a> {
    key: Key,
    group: &'a Group,
    matches: Vec<Match>,
    /// Why a sent record has no frame; `Matched` if it has one.
    sent: Vec<Option<Sent>>,
    received: Vec<Option<Received>>,
    /// Matching records of both ends, of a packet without a frame.
    unseen: Vec<(usize, usize, Sent, Received)>,
}

impl Solver<'_> {
    /// Frames and records by their bytes, in the order of the sender's records, or else the capture's.
    fn classes(&self) -> Vec<Class> {
        let group = self.group;
        let precise = group.wire.iter().all(|one| one.print.has_icrc())
            && group.tx.iter().chain(&group.rx).all(|one| one.print.has_icrc());
        let mut classes: Vec<Class> = Vec::new();
        let mut class = |print: Print| -> usize {
            let print = if precise { print } else { print.without_icrc() };
            classes.iter().position(|class| class.print == print).unwrap_or_else(|| {
                classes.push(Class { print, ..Class::default() });
                classes.len() - 1
            })
        };
        let tx: Vec<usize> = group.tx.iter().map(|one| class(one.print)).collect();
        let wire: Vec<usize> = group.wire.iter().map(|one| class(one.print)).collect();
        let rx: Vec<usize> = group.rx.iter().map(|one| class(one.print)).collect();
        for (of, part) in [
            (&tx, (|class| &mut class.tx) as fn(&mut Class) -> &mut Vec<usize>),
            (&wire, |class| &mut class.wire),
            (&rx, |class| &mut class.rx),
        ] {
            for (index, at) in of.iter().enumerate() {
                if let Some(class) = classes.get_mut(*at) {
                    part(class).push(index);
                }
            }
        }
        classes
    }

    fn send(&mut self, class: &Class) {
        let mut records = Vec::new();
        for &at in &class.tx {
            let Some(record) = self.group.tx.get(at) else { continue };
            if record.loopback {
                self.note_sent(at, Sent::Loopback);
            } else if record.drop.is_some() {
                self.note_sent(at, Sent::Dropped);
            } else {
                records.push(at);
            }
        }
        let given = |at: usize| {
            self.group.tx.get(at).is_some_and(|record| record.stages.get(START_XMIT).is_some())
        };
        let frames = &class.wire;
        let pairs = match (frames.len(), records.len()) {
            (f, r) if f == r => zip(frames, &records),
            (0, _) | (_, 0) => Vec::new(),
            (_, 1) => zip(frames, &records),
            (f, r) if r > f && records.iter().filter(|at| given(**at)).count() == f => {
                let given: Vec<usize> = records.iter().copied().filter(|at| given(*at)).collect();
                zip(frames, &given)
            }
            _ => {
                for &at in frames {
                    self.note_wire(at, |one| one.sent = Some(Sent::Ambiguous));
                }
                for at in records {
                    self.note_sent(at, Sent::Ambiguous);
                }
                return;
            }
        };
        let original = pairs.first().map(|(_, record)| *record);
        for (frame, record) in pairs {
            self.note_wire(frame, |one| (one.tx, one.sent) = (Some(record), Some(Sent::Matched)));
            self.note_sent(record, Sent::Matched);
        }
        for &at in frames {
            self.note_wire(at, |one| {
                if original.is_some() && one.sent.is_none() {
                    (one.copy_of, one.sent) = (original, Some(Sent::Copy));
                }
            });
        }
    }

    fn receive(&mut self, class: &Class) {
        let multicast = self.key.dqpn == MULTICAST;
        let mut records = Vec::new();
        for &at in &class.rx {
            let Some(record) = self.group.rx.get(at) else { continue };
            if record.loopback {
                self.note_received(at, Received::Loopback);
            } else if multicast {
                self.note_received(at, Received::Multicast);
            } else {
                records.push(at);
            }
        }
        // the driver accepts no frame with a wrong ICRC, unless only the capture has it wrong
        let good = |at: &usize| self.group.wire.get(*at).is_some_and(|frame| !frame.bad);
        let mut frames: Vec<usize> = class.wire.iter().copied().filter(good).collect();
        if records.len() > frames.len() {
            frames.clone_from(&class.wire);
        }
        let pairs = match (frames.len(), records.len()) {
            (f, r) if f == r => zip(&frames, &records),
            (0, _) | (_, 0) => Vec::new(),
            (1, _) => zip(&frames, &records),
            _ => {
                for &at in &frames {
                    self.note_wire(at, |one| one.received = Some(Received::Ambiguous));
                }
                for at in records {
                    self.note_received(at, Received::Ambiguous);
                }
                return;
            }
        };
        for (frame, record) in &pairs {
            let refused = self.group.rx.get(*record).is_some_and(Record::dropped_on_arrival);
            let received = if refused { Received::Dropped } else { Received::Matched };
            self.note_wire(*frame, |one| {
                (one.rx, one.received) = (Some(*record), Some(received));
            });
            self.note_received(*record, Received::Matched);
        }
        if !pairs.is_empty() {
            for at in records {
                if self.received.get(at).is_some_and(Option::is_none) {
                    self.note_received(at, Received::Copy);
                }
            }
        }
    }

    /// Pairs records of both ends without a frame: loopback, or the capture missed the frame.
    fn leftovers(&mut self, class: &Class) {
        for (sent, received) in [(Some(Sent::Loopback), Some(Received::Loopback)), (None, None)] {
            let tx = pick(&class.tx, &self.sent, sent);
            let rx = pick(&class.rx, &self.received, received);
            if tx.len() != rx.len() {
                continue;
            }
            for (tx, rx) in zip(&tx, &rx) {
                let (to, from) =
                    (sent.unwrap_or(Sent::NotCaptured), received.unwrap_or(Received::NotCaptured));
                self.unseen.push((tx, rx, to, from));
                self.note_sent(tx, Sent::Matched);
                self.note_received(rx, Received::Matched);
            }
        }
    }

    /// Matches a damaged frame to the record with the same headers, if only one has no frame yet.
    fn damaged(&mut self) {
        for at in 0..self.matches.len() {
            let Some(frame) = self.group.wire.get(at) else { continue };
            if !frame.bad || self.matches.get(at).is_none_or(|one| one.sent.is_some()) {
                continue;
            }
            let print = frame.print.without_icrc();
            let free = |index: usize| {
                self.sent.get(index).is_some_and(Option::is_none)
                    && self.group.tx.get(index).is_some_and(|r| r.print.without_icrc() == print)
            };
            let mut candidates = (0..self.sent.len()).filter(|index| free(*index));
            if let (Some(record), None) = (candidates.next(), candidates.next()) {
                drop(candidates);
                self.note_wire(at, |one| (one.tx, one.sent) = (Some(record), Some(Sent::Matched)));
                self.note_sent(record, Sent::Matched);
            }
        }
    }

    fn emit(&self, ends: &mut Ends, out: &mut Vec<Row>) {
        let group = self.group;
        let mut seen: Vec<Print> = Vec::new();
        for (frame, found) in group.wire.iter().zip(&self.matches) {
            let earlier = seen.iter().position(|print| *print == frame.print);
            let known = found.tx.or(found.copy_of).or(earlier);
            let again = known.unwrap_or(seen.len());
            if earlier.is_none() {
                seen.push(frame.print);
            }
            out.push(Row {
                key: self.key,
                wire: Some(*frame),
                tx: found.tx.and_then(|at| group.tx.get(at).copied()),
                rx: found.rx.and_then(|at| group.rx.get(at).copied()),
                sent: found.sent.or_else(|| Some(frame_sent(frame, &mut ends.sender))),
                received: found.received.or_else(|| Some(self.frame_received(frame, ends))),
                again: again as u32,
            });
        }
        let bare = Row {
            key: self.key,
            wire: None,
            tx: None,
            rx: None,
            sent: None,
            received: None,
            again: 0,
        };
        for &(tx, rx, sent, received) in &self.unseen {
            let (from, to) = (group.tx.get(tx).copied(), group.rx.get(rx).copied());
            let (sent, received) = (Some(sent), Some(received));
            out.push(Row { tx: from, rx: to, sent, received, again: tx as u32, ..bare });
        }
        for (at, (record, state)) in group.tx.iter().zip(&self.sent).enumerate() {
            let sent = match state {
                Some(Sent::Matched) => continue,
                Some(known) => *known,
                None if record.stages.get(START_XMIT).is_some() => Sent::BeforeCapture,
                None => Sent::BeforeDevice,
            };
            out.push(Row { tx: Some(*record), sent: Some(sent), again: at as u32, ..bare });
        }
        for (record, state) in group.rx.iter().zip(&self.received) {
            let received = match state {
                Some(Received::Matched) => continue,
                Some(known) => *known,
                None => Received::NotCaptured,
            };
            out.push(Row { rx: Some(*record), received: Some(received), ..bare });
        }
    }

    fn frame_received(&self, frame: &WireFrame, ends: &Ends) -> Received {
        if frame.bad {
            Received::Damaged
        } else if self.key.dqpn == MULTICAST {
            Received::Multicast
        } else if !ends.receiver.traced {
            Received::NotTraced
        } else if ends.receiver.left_out {
            Received::NotRecorded
        } else if ends.receiver.lost > 0 {
            Received::LostOrRecordLost
        } else {
            Received::BehindCapture
        }
    }

    fn note_wire(&mut self, at: usize, change: impl FnOnce(&mut Match)) {
        if let Some(one) = self.matches.get_mut(at) {
            change(one);
        }
    }

    fn note_sent(&mut self, at: usize, state: Sent) {
        if let Some(slot) = self.sent.get_mut(at) {
            *slot = Some(state);
        }
    }

    fn note_received(&mut self, at: usize, state: Received) {
        if let Some(slot) = self.received.get_mut(at) {
            *slot = Some(state);
        }
    }
}

fn frame_sent(frame: &WireFrame, sender: &mut End) -> Sent {
    if frame.bad {
        Sent::Damaged
    } else if !sender.traced {
        Sent::NotTraced
    } else if sender.left_out {
        Sent::NotRecorded
    } else if sender.left > 0 {
        sender.left -= 1;
        Sent::RecordLost
    } else {
        Sent::Unexplained
    }
}

fn zip(left: &[usize], right: &[usize]) -> Vec<(usize, usize)> {
    left.iter().copied().zip(right.iter().copied()).collect()
}

fn pick<T: PartialEq + Copy>(of: &[usize], states: &[Option<T>], wanted: Option<T>) -> Vec<usize> {
    of.iter().copied().filter(|at| states.get(*at) == Some(&wanted)).collect()
}
