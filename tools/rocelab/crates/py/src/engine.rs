// SPDX-License-Identifier: GPL-2.0-or-later
//! The pipeline: read blocks, decode and verify them in parallel, follow connections in order.

use rayon::prelude::*;
use roce::finding::{At, Rule};
use roce::flow::{Config, Connection, Message, Tracker};
use roce::icrc::{self, Diagnosis};
use roce::{Frame, Icrc, Interval, Packet, Ports, Series, decode};

use crate::read::{Block, Input, Merge, ReadError, Reader, Record};
use crate::select::Select;
use crate::tables::PacketColumns;
use crate::totals::Totals;

/// Bytes that one worker takes at a time: within a core's own cache.
const PIECE: usize = 256 << 10;
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

#[derive(Default)]
struct Lane {
    block: Block,
    frames: Vec<Frame>,
    totals: Totals,
}

impl Lane {
    fn decode(&mut self, options: &Options, ports: &Ports) {
        self.frames.clear();
        self.totals = Totals::default();
        for record in &self.block.records {
            let frame = decode_one(&self.block, record, options, ports, &mut self.totals);
            self.frames.push(frame);
        }
    }
}

#[inline]
fn decode_one(
    block: &Block,
    record: &Record,
    options: &Options,
    ports: &Ports,
    totals: &mut Totals,
) -> Frame {
    let bytes = block.frame(record);
    totals.packets += 1;
    totals.bytes += u64::from(record.wire_len);
    totals.truncated += u64::from(record.len < record.wire_len);
    let mut frame = decode(record.link, bytes, record.wire_len, ports);
    match &mut frame {
        Frame::Roce(packet) => {
            if !options.select.admits(packet, record.time_ns) {
                totals.other += 1;
                return Frame::Other;
            }
            if options.icrc {
                packet.icrc = icrc::check(packet, bytes);
            }
            totals.roce(packet);
        }
        Frame::Cut => totals.cut += 1,
        Frame::Pfc(classes) => totals.pfc(*classes),
        Frame::Pause => totals.pause += 1,
        Frame::Other => totals.other += 1,
    }
    frame
}

/// An analysis under way.
pub struct Engine {
    options: Options,
    ports: Ports,
    merge: Merge,
    pool: Option<rayon::ThreadPool>,
    lanes: Vec<Lane>,
    /// Sums so far.
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
    /// Packets with a time before that of the packet before them.
    pub backwards: u64,
    /// The columns of packets not yet taken.
    pub packets: PacketColumns,
}

impl Engine {
    /// Start on opened captures.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(inputs: Vec<Input>, options: Options) -> Result<Self, rayon::ThreadPoolBuildError> {
        let piece = if inputs.len() > 8 { PIECE / 4 } else { PIECE };
        let readers = (0..).zip(inputs).map(|(file, input)| Reader::new(input, file, piece));
        let threads = options.threads.max(1);
        let pool = if threads > 1 {
            Some(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?)
        } else {
            None
        };
        Ok(Self {
            ports: Ports::with(&options.ports),
            merge: Merge::new(readers.collect(), PIECE),
            pool,
            lanes: (0..if threads > 1 { threads * 4 } else { 1 })
                .map(|_| Lane::default())
                .collect(),
            totals: Totals::default(),
            tracker: Tracker::new(options.tracker.clone()),
            bad: Vec::new(),
            series: Series::new(SERIES_LIMIT),
            times: None,
            last_ns: i64::MIN,
            backwards: 0,
            packets: PacketColumns::default(),
            options,
        })
    }

    /// What went wrong while reading, by file.
    #[must_use]
    pub fn errors(&self) -> &[(u16, ReadError)] {
        &self.merge.errors
    }

    /// Take the next blocks; `false` when there are none.
    pub fn step(&mut self) -> bool {
        let mut filled = 0;
        for lane in &mut self.lanes {
            if !self.merge.fill(&mut lane.block) {
                break;
            }
            filled += 1;
            if self.totals.packets == 0 && filled == 1 {
                if let Some(record) = lane.block.records.first() {
                    self.options.select.begin(record.time_ns);
                }
            }
        }
        let (options, ports) = (&self.options, &self.ports);
        let mut lanes = std::mem::take(&mut self.lanes);
        if let Some(lanes) = lanes.get_mut(..filled) {
            match &self.pool {
                Some(pool) => {
                    pool.install(|| {
                        lanes.par_iter_mut().for_each(|lane| lane.decode(options, ports))
                    });
                }
                None => lanes.iter_mut().for_each(|lane| lane.decode(options, ports)),
            }
            for lane in lanes {
                self.follow(lane);
            }
        }
        self.lanes = lanes;
        filled > 0
    }

    fn follow(&mut self, lane: &Lane) {
        self.totals.merge(&lane.totals);
        for (record, frame) in lane.block.records.iter().zip(&lane.frames) {
            let time_ns = record.time_ns;
            self.backwards += u64::from(time_ns < self.last_ns);
            self.last_ns = time_ns;
            let (first, last) = self.times.unwrap_or((time_ns, time_ns));
            self.times = Some((first.min(time_ns), last.max(time_ns)));
            if let Frame::Roce(packet) = frame {
                self.packet(packet, &lane.block, record);
            }
        }
    }

    #[inline]
    fn packet(&mut self, packet: &Packet, block: &Block, record: &Record) {
        let bytes = block.frame(record);
        let at = At { file: record.file, packet: record.number, time_ns: record.time_ns };
        let payload_bytes = u64::from(packet.payload_len);
        self.series.add(at.time_ns, Interval { packets: 1, retransmitted: 0, payload_bytes });
        let diagnosis = if packet.icrc == Icrc::Bad { icrc::diagnose(packet, bytes) } else { None };
        let connection = self.tracker.packet(packet, bytes, at, diagnosis);
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
        self.tracker.finish()
    }
}
