// SPDX-License-Identifier: GPL-2.0-or-later
//! Joins frames and records into rows, in bounded memory.

use std::collections::HashMap;

use super::cause::{Received, Sent};
use super::comment::{Comment, Dir, Reject};
use super::joined_row::{Record, Row, WireFrame};
use super::packet_key::{Key, Print};
use super::sightings::{End, Ends, Group};
use crate::finding::At;
use crate::icrc;
use crate::packet::{Icrc, Packet};

/// More sightings of one key than any retry count causes: they are hostile, and resolved at once.
const MAX_GROUP: usize = 1024;
const MAX_ADDRESSES: usize = 4096;

/// Limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// Keys held in memory. A key that leaves the window is resolved with what is known by then.
    pub window: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { window: 1 << 17 }
    }
}

/// What is missing from a trace, by its own account.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace {
    /// Records that the probe lost.
    pub lost: u64,
    /// One packet in `sample` was recorded; 0 and 1 mean all.
    pub sample: u64,
    /// Whether a filter selected what was recorded.
    pub filtered: bool,
    /// Whether the probe says that it wrote it.
    pub told: bool,
}

impl Trace {
    /// Whether the probe may have skipped packets with this PSN.
    fn leaves_out(&self, psn: u32) -> bool {
        let spread = u64::from(psn.wrapping_mul(2_654_435_769));
        self.filtered || (self.sample > 1 && spread >= (1 << 32) / self.sample)
    }
}

/// The origin of a record. The caller keeps the names; these are its indexes of them.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The trace.
    pub trace: u16,
    /// The node.
    pub node: u16,
    /// The device.
    pub dev: u16,
    /// The reason of a drop.
    pub drop: Option<u16>,
}

/// Sums.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Frames of the capture that were joined.
    pub frames: u64,
    /// Frames among these that were sent before with other bytes: retransmissions and repeated
    /// responses.
    pub frames_again: u64,
    /// Frames by [`Sent`].
    pub sent: [u64; Sent::ALL.len()],
    /// Frames by [`Received`].
    pub received: [u64; Received::ALL.len()],
    /// Records of sent packets.
    pub tx: u64,
    /// Records of received packets.
    pub rx: u64,
    /// Records of sent packets without a frame, by cause.
    pub tx_alone: [u64; Sent::ALL.len()],
    /// Records of received packets without a frame, by cause.
    pub rx_alone: [u64; Received::ALL.len()],
    /// Rows without a known cause.
    pub unexplained: u64,
    /// Frames and records that left the window before all three places had seen their packet.
    pub early: u64,
}

/// A join in progress.
#[derive(Debug, Default)]
pub struct Joiner {
    window: usize,
    /// A group that gets a new sighting moves from `old` to `young`; `old` is resolved as a whole.
    young: HashMap<Key, Group>,
    old: HashMap<Key, Group>,
    rows: Vec<Row>,
    traces: Vec<Trace>,
    /// Lost records of each trace that do not yet account for a frame.
    left: Vec<u64>,
    /// The traces of each local address.
    traced: HashMap<[u8; 16], Vec<u16>>,
    /// Sums so far.
    pub tally: Tally,
}

impl Joiner {
    /// Starts a join with these traces.
    #[must_use]
    pub fn new(config: &Config, traces: Vec<Trace>) -> Self {
        let left = traces.iter().map(|trace| trace.lost).collect();
        Self { window: config.window.max(2), traces, left, ..Self::default() }
    }

    /// Adds a frame of the capture between the nodes; verifies its ICRC.
    pub fn wire(&mut self, packet: &Packet, frame: &[u8], at: At) {
        self.tally.frames += 1;
        let one = WireFrame {
            at,
            wire_len: packet.wire_len,
            payload_len: packet.payload_len,
            bad: icrc::check(packet, frame) == Icrc::Bad,
            print: Print::of(packet, frame),
        };
        self.add(Key::of(packet, frame), |group| group.wire.push(one));
    }

    /// Adds a record of a driver.
    ///
    /// # Errors
    /// If the comment contradicts the packet's bytes.
    pub fn record(
        &mut self,
        packet: &Packet,
        frame: &[u8],
        at: At,
        comment: &Comment<'_>,
        place: Place,
    ) -> Result<(), Reject> {
        let named =
            comment.op.as_ref().is_none_or(|name| packet.op().is_none_or(|op| op.name == name));
        let numbered = comment.dqpn.is_none_or(|dqpn| dqpn == packet.dqpn)
            && comment.psn.is_none_or(|psn| psn == packet.psn);
        if !named || !numbered {
            return Err(Reject::Contradiction);
        }
        let record = Record {
            at,
            node: place.node,
            dev: place.dev,
            qpn: comment.qpn,
            payload_len: packet.payload_len,
            stages: comment.stages,
            gap_ns: comment.gap_ns,
            switched: comment.switched,
            loopback: comment.loopback,
            drop: place.drop,
            print: Print::of(packet, frame),
        };
        let sends = comment.dir == Dir::Tx;
        self.knows(if sends { packet.src } else { packet.dst }, place.trace);
        let count = if sends { &mut self.tally.tx } else { &mut self.tally.rx };
        *count += 1;
        self.add(Key::of(packet, frame), |group| {
            if sends { &mut group.tx } else { &mut group.rx }.push(record);
        });
        Ok(())
    }

    /// Takes the rows that are ready. Rows that were resolved together are in capture order.
    pub fn take_rows(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }

    /// Resolves the rest.
    pub fn finish(&mut self) {
        self.retire(false);
        self.retire(false);
    }

    fn knows(&mut self, address: [u8; 16], trace: u16) {
        let room = self.traced.len() < MAX_ADDRESSES;
        if let Some(known) = self.traced.get_mut(&address) {
            if !known.contains(&trace) && known.len() < MAX_ADDRESSES {
                known.push(trace);
            }
        } else if room {
            self.traced.insert(address, vec![trace]);
        }
    }

    fn add(&mut self, key: Key, put: impl FnOnce(&mut Group)) {
        if let Some(group) = self.young.get_mut(&key) {
            put(group);
            if group.len() >= MAX_GROUP {
                if let Some(group) = self.young.remove(&key) {
                    self.tally.early += group.len() as u64;
                    let from = self.rows.len();
                    self.resolve(key, group);
                    self.count(from);
                }
            }
            return;
        }
        let mut group = self.old.remove(&key).unwrap_or_default();
        put(&mut group);
        self.young.insert(key, group);
        if self.young.len() >= self.window / 2 {
            self.retire(true);
        }
    }

    /// Resolves the old groups; the young ones become old.
    fn retire(&mut self, early: bool) {
        let young = std::mem::take(&mut self.young);
        let old = std::mem::replace(&mut self.old, young);
        let from = self.rows.len();
        // the first frames without a record get the probe's losses, so order the groups: a hash map's
        // order differs from run to run
        let mut groups: Vec<(Key, Group)> = old.into_iter().collect();
        groups.sort_by_key(|(_, group)| group.first());
        for (key, group) in groups {
            if early && !group.is_whole() {
                self.tally.early += group.len() as u64;
            }
            self.resolve(key, group);
        }
        self.count(from);
    }

    fn resolve(&mut self, key: Key, group: Group) {
        let sender = self.end(&key.src, key.psn);
        let mut ends = Ends { sender, receiver: self.end(&key.dst, key.psn) };
        let before = ends.sender.left;
        group.resolve(key, &mut ends, &mut self.rows);
        self.spend(&key.src, before - ends.sender.left);
    }

    fn end(&self, address: &[u8; 16], psn: u32) -> End {
        let Some(traces) = self.traced.get(address) else { return End::default() };
        let mut end = End { traced: true, ..End::default() };
        for at in traces.iter().map(|at| usize::from(*at)) {
            let trace = self.traces.get(at).copied().unwrap_or_default();
            end.lost = end.lost.saturating_add(trace.lost);
            end.left_out |= trace.leaves_out(psn);
            end.left = end.left.saturating_add(self.left.get(at).copied().unwrap_or_default());
        }
        end
    }

    fn spend(&mut self, address: &[u8; 16], mut spent: u64) {
        for at in self.traced.get(address).into_iter().flatten() {
            if let Some(left) = self.left.get_mut(usize::from(*at)) {
                let part = spent.min(*left);
                *left -= part;
                spent -= part;
            }
        }
    }

    fn count(&mut self, from: usize) {
        let Some(rows) = self.rows.get_mut(from..) else { return };
        rows.sort_by_key(|row| {
            let frame = row.wire.map_or(u64::MAX, |frame| frame.at.packet);
            let record =
                row.tx.or(row.rx).map_or((u16::MAX, u64::MAX), |one| (one.at.file, one.at.packet));
            (frame, record)
        });
        let tally = &mut self.tally;
        for row in rows {
            let clear = row.sent.is_none_or(Sent::explained)
                && row.received.is_none_or(Received::explained);
            tally.unexplained += u64::from(!clear);
            let framed = row.wire.is_some();
            tally.frames_again += u64::from(framed && row.again > 0);
            let sent = if framed { &mut tally.sent } else { &mut tally.tx_alone };
            if let Some(state) = row.sent {
                sent[state as usize] += 1;
            }
            let received = if framed { &mut tally.received } else { &mut tally.rx_alone };
            if let Some(state) = row.received {
                received[state as usize] += 1;
            }
        }
    }
}
