// SPDX-License-Identifier: GPL-2.0-or-later
//! The pipeline: read blocks, decode and verify them (in parallel), follow connections in order.

use std::sync::Arc;

use roce::finding::{At, Rule};
use roce::flow::{Config, Connection, Message, Stretch, Tracker};
use roce::icrc::{self, Diagnosis};
use roce::{Icrc, Interval, Own, Packet, Ports, Series};

use crate::lane::{Lane, Rules, Run};
use crate::read::{Block, Input, Merge, ReadError, Reader, Record};
use crate::select::Select;
use crate::tables::PacketColumns;
use crate::totals::Totals;
use crate::workers::Workers;

/// Bytes read at a time: they and what is made of them stay within a core's own cache.
const PIECE: usize = 128 << 10;
/// Blocks under way per worker: enough that none waits for the other threads.
const LANES_PER_WORKER: usize = 4;
const SERIES_LIMIT: usize = 512;

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// UDP ports of RoCE v2 besides 4791.
    pub ports: Vec<u16>,
    /// Verify ICRCs.
    pub icrc: bool,
    /// Worker threads.
    pub threads: usize,
    /// Keep columns of packets.
    pub packets: bool,
    /// Which packets count, and which are listed.
    pub select: Select,
    /// Limits of the tracker.
    pub tracker: Config,
}

/// A packet with a wrong ICRC.
#[derive(Clone, Copy, Debug)]
pub struct BadIcrc {
    /// Which packet.
    pub at: At,
    /// The ICRC that its bytes should have.
    pub expected: u32,
    /// The one that it has.
    pub found: u32,
    /// The likely reason.
    pub diagnosis: Diagnosis,
}

/// An analysis under way.
pub struct Engine {
    options: Options,
    rules: Arc<Rules>,
    merge: Merge,
    /// Threads besides the caller's, which reads and follows.
    workers: Option<Workers>,
    idle: Vec<Lane>,
    begun: bool,
    /// Packets with different headers so far, block by block.
    alike: u64,
    /// Sums; complete after [`Engine::finish`].
    pub totals: Totals,
    /// Connections and findings.
    pub tracker: Tracker,
    /// Wrong ICRCs, up to the limit of findings.
    pub bad: Vec<BadIcrc>,
    /// RoCE packets over time.
    pub series: Series,
    /// Least and greatest time, ns since 1970.
    pub times: Option<(i64, i64)>,
    last_ns: i64,
    /// The frame number of the last packet that was followed, in the last file that it came from.
    pub followed: u64,
    /// Packets with a time before that of the packet before them.
    pub backwards: u64,
    /// The columns of packets not yet taken.
    pub packets: PacketColumns,
}

impl Engine {
    /// Start on opened captures.
    #[must_use]
    pub fn new(inputs: Vec<Input>, options: Options) -> Self {
        let piece = if inputs.len() > 8 { PIECE / 2 } else { PIECE };
        let readers = (0..).zip(inputs).map(|(file, input)| Reader::new(input, file, piece));
        let workers = options.threads.max(1) - 1;
        Self {
            rules: Arc::new(Rules {
                ports: Ports::with(&options.ports),
                icrc: options.icrc,
                select: options.select.clone(),
            }),
            merge: Merge::new(readers.collect(), PIECE),
            workers: None,
            idle: (0..(workers * LANES_PER_WORKER).max(1)).map(|_| Lane::default()).collect(),
            begun: false,
            // 0 is no number
            alike: 1,
            totals: Totals::default(),
            tracker: Tracker::new(options.tracker.clone()),
            bad: Vec::new(),
            series: Series::new(SERIES_LIMIT),
            times: None,
            last_ns: i64::MIN,
            followed: 0,
            backwards: 0,
            packets: PacketColumns::default(),
            options,
        }
    }

    /// What went wrong while reading, by file.
    #[must_use]
    pub fn errors(&self) -> &[(u16, ReadError)] {
        &self.merge.errors
    }

    /// Go on for one block; `false` when there are no more.
    pub fn step(&mut self) -> bool {
        while let Some(mut lane) = self.idle.pop() {
            if !self.merge.fill(&mut lane.block) {
                self.idle.push(lane);
                break;
            }
            if !self.begun {
                self.begin(&lane);
            }
            let Some(workers) = &mut self.workers else {
                lane.decode(&self.rules);
                self.follow(&lane);
                self.idle.push(lane);
                return true;
            };
            workers.give(lane);
        }
        let Some(lane) = self.workers.as_mut().and_then(Workers::take) else { return false };
        self.follow(&lane);
        self.idle.push(lane);
        true
    }

    /// Times of a filter count from the first packet.
    fn begin(&mut self, lane: &Lane) {
        self.begun = true;
        let first_ns = lane.block.records.first().map_or(0, |record| record.time_ns);
        if let Some(rules) = Arc::get_mut(&mut self.rules) {
            rules.select.begin(first_ns);
        }
        let count = self.options.threads.max(1) - 1;
        if count > 0 {
            // a system that gives no threads gets the same result, later
            self.workers = Workers::new(count, &self.rules).ok();
        }
    }

    fn follow(&mut self, lane: &Lane) {
        self.followed = lane.block.records.last().map_or(self.followed, |record| record.number);
        if let Some(times) = lane.times {
            self.backwards += times.backwards + u64::from(times.first < self.last_ns);
            self.last_ns = times.last;
            let (least, greatest) = self.times.unwrap_or((times.least, times.greatest));
            self.times = Some((least.min(times.least), greatest.max(times.greatest)));
        }
        self.count_over_time(lane);
        let first = self.alike;
        self.alike += lane.packets.len() as u64;
        for run in &lane.runs {
            self.run(lane, run, first + u64::from(run.packet));
        }
    }

    fn run(&mut self, lane: &Lane, run: &Run, alike: u64) {
        let Some((packet, _)) = lane.packets.get(run.packet as usize) else { return };
        let own_of = |record| Own::of(packet, lane.block.frame(record));
        // what is listed or wrong is looked at one by one
        let short = !self.options.packets && run.icrc != Icrc::Bad;
        let in_time = lane.times.is_some_and(|times| times.backwards == 0);
        let (mut records, mut own) = (lane.records(run), run.own);
        while let Some((first, others)) = records.split_first() {
            let mut taken = 0;
            if short {
                let stretch = Stretch { alike, psn: own.psn, count: records.len(), in_time };
                let record = |index| records.get(index).unwrap_or(first);
                let icrc = |index| own_of(record(index)).icrc;
                taken = self.tracker.go_on(&stretch, |index| at(record(index)), icrc);
            }
            if taken == 0 {
                // copied whole, which is quicker than field by field
                let mut packet = *packet;
                (packet.psn, packet.apsn, packet.icrc) = (own.psn, own.apsn, run.icrc);
                self.packet(&packet, alike, &lane.block, first);
                records = others;
            } else {
                records = records.get(taken..).unwrap_or_default();
            }
            own = records.first().map(own_of).unwrap_or_default();
        }
    }

    /// At once, where the whole block lies within one interval.
    fn count_over_time(&mut self, lane: &Lane) {
        let current = |time_ns| self.series.is_current(time_ns);
        if lane.times.is_some_and(|times| current(times.least) && current(times.greatest)) {
            self.series.add_to_current(Interval {
                packets: lane.count,
                retransmitted: 0,
                payload_bytes: lane.payload_bytes,
            });
            return;
        }
        for run in &lane.runs {
            let Some((packet, _)) = lane.packets.get(run.packet as usize) else { break };
            let interval = |packets: u32| Interval {
                packets,
                retransmitted: 0,
                payload_bytes: u64::from(packet.payload_len) * u64::from(packets),
            };
            let mut records = lane.records(run);
            while let Some((first, others)) = records.split_first() {
                self.series.turn_to(first.time_ns);
                let current = |record: &&Record| self.series.is_current(record.time_ns);
                let count = others.iter().take_while(current).count();
                self.series.add_to_current(interval(count as u32 + 1));
                records = others.get(count..).unwrap_or_default();
            }
        }
    }

    fn packet(&mut self, packet: &Packet, alike: u64, block: &Block, record: &Record) {
        let bytes = block.frame(record);
        let at = at(record);
        let diagnosis = if packet.icrc == Icrc::Bad { icrc::diagnose(packet, bytes) } else { None };
        let connection = self.tracker.packet(packet, alike, bytes, at, diagnosis);
        if let Some(diagnosis) = diagnosis {
            self.bad_icrc(packet, bytes, at, diagnosis, connection);
        }
        if self.options.packets && self.options.select.lists(packet, bytes, connection) {
            self.packets.push(packet, bytes, block.comment(record), record.len, at, connection);
        }
    }

    #[cold]
    fn bad_icrc(
        &mut self,
        packet: &Packet,
        bytes: &[u8],
        at: At,
        diagnosis: Diagnosis,
        connection: Option<u32>,
    ) {
        let (Some(expected), Some(found)) =
            (icrc::expected(packet, bytes), icrc::found(packet, bytes))
        else {
            return;
        };
        if self.bad.len() < self.options.tracker.max_findings {
            self.bad.push(BadIcrc { at, expected, found, diagnosis });
        }
        let rule = if diagnosis == Diagnosis::Zero { Rule::IcrcZero } else { Rule::IcrcBad };
        self.tracker.findings.add(rule, at, connection, false, || {
            format!("ICRC {found:#010x}, expected {expected:#010x}: it {}", diagnosis.text())
        });
    }

    /// Messages completed since the last call.
    pub fn take_messages(&mut self) -> Vec<Message> {
        self.tracker.take_messages()
    }

    /// End all connections.
    pub fn finish(&mut self) -> Vec<Connection> {
        for lane in &mut self.idle {
            let mut totals = std::mem::take(&mut lane.totals);
            totals.settle();
            self.totals.merge(&totals);
        }
        self.tracker.finish()
    }
}

fn at(record: &Record) -> At {
    At { file: record.file, packet: record.number, time_ns: record.time_ns }
}
