// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads a capture and traces in parallel, decodes them, and joins their packets.

use roce::finding::At;
use roce::join::{Comment, Config, Dir, Joiner, Place, Record, Reject, Row, Trace};
use roce::{Frame, Ports, decode, opcode};

use super::interleave::Interleave;
use super::joined_columns::{JoinedColumns, RecordNames};
use crate::read::{Input, ReadError, Reader};

const PIECE: usize = 256 << 10;

/// What to join and what to keep.
#[derive(Clone, Debug, Default)]
pub struct JoinOptions {
    /// UDP ports of RoCE v2 in addition to 4791.
    pub ports: Vec<u16>,
    /// Packets in memory; 0: the default.
    pub window: usize,
    /// Keep rows as Arrow columns.
    pub packets: bool,
    /// Keep the rows themselves.
    pub rows: bool,
}

/// A join in progress. File 0 is the capture between the nodes; the others are traces.
pub struct CaptureJoin {
    files: Interleave,
    ports: Ports,
    joiner: Joiner,
    names: RecordNames,
    keep: bool,
    keep_rows: bool,
    /// Rows that were not taken yet, if they are kept.
    pub rows: Vec<Row>,
    /// The frame number of the last frame that was joined.
    pub seen: u64,
    /// Arrow rows that were not taken yet.
    pub columns: JoinedColumns,
    /// Rejected comments, by `Reject as usize`.
    pub rejected: [u64; Reject::ALL.len()],
    /// Packets of traces without a comment.
    pub bare: u64,
    /// Frames, and packets of traces, that are cut before the end of the BTH.
    pub cut: [u64; 2],
    /// Frames, and packets of traces, that are not RoCE.
    pub other: [u64; 2],
}

impl CaptureJoin {
    /// Starts a join of opened captures (plain bytes); each trace comes with the account of what it lacks.
    #[must_use]
    pub fn new(wire: Input, traces: Vec<(Input, Trace)>, options: &JoinOptions) -> Self {
        let (inputs, traces): (Vec<Input>, Vec<Trace>) = traces.into_iter().unzip();
        let readers = std::iter::once(wire).chain(inputs);
        let readers = (0..).zip(readers).map(|(file, input)| Reader::new(input, file, PIECE));
        let mut config = Config::default();
        if options.window > 0 {
            config.window = options.window;
        }
        Self {
            files: Interleave::new(readers.collect()),
            ports: Ports::with(&options.ports),
            joiner: Joiner::new(&config, traces),
            names: RecordNames::default(),
            keep: options.packets,
            keep_rows: options.rows,
            rows: Vec::new(),
            seen: 0,
            columns: JoinedColumns::default(),
            rejected: [0; Reject::ALL.len()],
            bare: 0,
            cut: [0; 2],
            other: [0; 2],
        }
    }

    /// Errors while reading, by file.
    #[must_use]
    pub fn errors(&self) -> &[(u16, ReadError)] {
        &self.files.errors
    }

    /// The sums so far.
    #[must_use]
    pub fn tally(&self) -> &roce::join::Tally {
        &self.joiner.tally
    }

    /// The comment that the driver wrote about a record of a row.
    #[must_use]
    pub fn comment<'a>(&'a self, row: &Row, record: &Record, dir: Dir) -> Option<Comment<'a>> {
        let op = opcode::lookup(row.key.opcode);
        let op = op.map_or_else(|| format!("{:#04x}", row.key.opcode).into(), |op| op.name.into());
        let drop = match record.drop {
            Some(reason) => Some(self.names.reasons.name(reason)?.into()),
            None => None,
        };
        Some(Comment {
            node: self.names.nodes.name(record.node)?.into(),
            dev: self.names.devs.name(record.dev)?.into(),
            dir,
            op: Some(op),
            qpn: record.qpn,
            dqpn: Some(row.key.dqpn),
            psn: Some(row.key.psn),
            stages: record.stages,
            gap_ns: record.gap_ns,
            switched: record.switched,
            loopback: record.loopback,
            drop,
        })
    }

    /// Joins up to this many packets; `false` at the end of all files.
    pub fn step(&mut self, packets: usize) -> bool {
        for _ in 0..packets {
            let Some((block, record)) = self.files.next() else { return false };
            let bytes = block.frame(&record);
            let traced = usize::from(record.file > 0);
            if record.file == 0 {
                self.seen = record.number;
            }
            let packet = match decode(record.link, bytes, record.wire_len, &self.ports) {
                Frame::Roce(packet) => packet,
                Frame::Cut => {
                    self.cut[traced] += 1;
                    continue;
                }
                _ => {
                    self.other[traced] += 1;
                    continue;
                }
            };
            let at = At { file: record.file, packet: record.number, time_ns: record.time_ns };
            let Some(trace) = record.file.checked_sub(1) else {
                self.joiner.wire(&packet, bytes, at);
                continue;
            };
            let Some(comment) = block.comment(&record) else {
                self.bare += 1;
                continue;
            };
            let taken = Comment::parse(comment).and_then(|comment| {
                let place = Place {
                    trace,
                    node: self.names.nodes.index(&comment.node).ok_or(Reject::Range)?,
                    dev: self.names.devs.index(&comment.dev).ok_or(Reject::Range)?,
                    drop: match &comment.drop {
                        Some(reason) => {
                            Some(self.names.reasons.index(reason).ok_or(Reject::Range)?)
                        }
                        None => None,
                    },
                };
                self.joiner.record(&packet, bytes, at, &comment, place)
            });
            if let Err(reject) = taken {
                self.rejected[reject as usize] += 1;
            }
        }
        self.drain();
        true
    }

    /// Joins the rest.
    pub fn finish(&mut self) {
        self.joiner.finish();
        self.drain();
    }

    fn drain(&mut self) {
        let rows: Vec<Row> = self.joiner.take_rows();
        if self.keep {
            for row in &rows {
                self.columns.push(row, &self.names);
            }
        }
        if self.keep_rows {
            self.rows.extend(rows);
        }
    }
}
