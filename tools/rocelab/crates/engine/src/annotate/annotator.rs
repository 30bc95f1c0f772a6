// SPDX-License-Identifier: GPL-2.0-or-later
//! Analyses and joins the capture, and copies it a window behind them with comments.

use std::io::Write;

use roce::flow;
use roce::icrc::Absence;
use roce::join::{Dir, Row};

use super::capture_copy::{Copier, CopyError};
use super::packet_notes::Notes;
use crate::analyzer::Analyzer;
use crate::join::CaptureJoin;
use crate::read::{Input, SORTED};

/// Packets that the join reads at a time.
const JOIN_STEP: usize = 1 << 12;
/// Findings kept of one step; the tracker only counts more.
const MAX_FINDINGS: usize = 1 << 16;

/// How to annotate.
#[derive(Clone, Debug)]
pub struct Options {
    /// UDP ports of RoCE v2 in addition to 4791.
    pub ports: Vec<u16>,
    /// Worker threads.
    pub threads: usize,
    /// Report selective repeat as a violation of Go-Back-N.
    pub go_back_n: bool,
    /// Packets by which the copy lags behind the analysis.
    pub window: usize,
    /// Segments of which one place has seen each packet so often.
    pub looks: Vec<(u64, u32)>,
    /// No packet has an ICRC.
    pub absence: Option<Absence>,
    /// No ICRC is right: packets are followed nevertheless.
    pub follow_corrupt: bool,
    /// The capture has a sample of the packets: leave out findings that compare packets.
    pub sampled: bool,
    /// Lines of the verdict on the whole capture, by packet.
    pub verdict: Vec<(u64, String)>,
    /// The comment on the whole capture.
    pub comment: Option<String>,
}

/// An annotation in progress. The analysis, the join and the copy each read the capture through a
/// file handle of their own.
pub struct Annotator<W> {
    /// The analysis.
    pub analyzer: Analyzer,
    /// The join, if there are traces.
    pub join: Option<CaptureJoin>,
    /// Comments that are not written yet.
    pub notes: Notes,
    /// The copy.
    pub copier: Copier<W>,
    window: u64,
    sampled: bool,
    /// Why the copy ended early.
    pub error: Option<CopyError>,
}

impl<W: Write> Annotator<W> {
    /// Starts on opened captures (plain bytes).
    #[must_use]
    pub fn new(
        analysed: Input,
        copied: Input,
        output: W,
        join: Option<CaptureJoin>,
        options: &Options,
    ) -> Self {
        let tracker = flow::Config {
            max_findings: MAX_FINDINGS,
            go_back_n: options.go_back_n,
            keep_messages: false,
            keep_verdicts: true,
            follow_corrupt: options.follow_corrupt,
            without_copies: !options.looks.is_empty(),
            ..flow::Config::default()
        };
        let analysis = crate::analyzer::Options {
            ports: options.ports.clone(),
            threads: options.threads,
            tracker,
            looks: options.looks.clone(),
            absence: options.absence,
            // nothing reads ahead: the copy follows what was read
            ..Default::default()
        };
        Self {
            analyzer: Analyzer::new(vec![analysed], analysis),
            join,
            notes: Notes::new(&options.verdict),
            copier: Copier::new(copied, output, options.comment.clone()),
            window: options.window as u64,
            sampled: options.sampled,
            error: None,
        }
    }

    /// Processes one block; `false` at the end.
    ///
    /// # Errors
    /// If writing fails. An error while reading ends the copy and is kept in `error`.
    pub fn step(&mut self) -> Result<bool, CopyError> {
        let more = self.analyzer.step();
        if more {
            self.collect();
            let ahead = self.analyzer.followed;
            self.join_to(ahead);
            // records that are sorted are followed that much later than they come
            let sorted = if self.analyzer.disorder().0 > 0 { SORTED as u64 } else { 0 };
            self.copy(ahead.saturating_sub(self.window + sorted))?;
        } else {
            self.analyzer.finish();
            self.collect();
            self.join_to(u64::MAX);
            if let Some(join) = &mut self.join {
                join.finish();
            }
            self.collect_rows();
            self.copy(u64::MAX)?;
        }
        Ok(more)
    }

    fn join_to(&mut self, packet: u64) {
        loop {
            let Some(join) = &mut self.join else { return };
            let more = join.seen < packet && join.step(JOIN_STEP);
            self.collect_rows();
            if !more {
                return;
            }
        }
    }

    fn collect(&mut self) {
        // the packets behind `followed` that come earlier in the file have a number up to this
        let now = self.analyzer.followed.saturating_add(SORTED as u64);
        for verdict in self.analyzer.tracker.take_verdicts() {
            self.notes.verdict(verdict, now);
        }
        for finding in std::mem::take(&mut self.analyzer.tracker.findings.list) {
            if !self.sampled || !finding.rule.needs_all_packets() {
                self.notes.finding(&finding);
            }
        }
        self.analyzer.bad.clear();
    }

    fn collect_rows(&mut self) {
        let Some(join) = &mut self.join else { return };
        let rows: Vec<Row> = std::mem::take(&mut join.rows);
        for row in &rows {
            let Some(wire) = row.wire else { continue };
            for (dir, record) in [(Dir::Tx, row.tx), (Dir::Rx, row.rx)] {
                let comment = record.and_then(|record| join.comment(row, &record, dir));
                if let Some(comment) = comment {
                    self.notes.driver(wire.at.packet, dir, comment.text(row.key.net));
                }
            }
        }
    }

    fn copy(&mut self, packets: u64) -> Result<(), CopyError> {
        let notes = &mut self.notes;
        match self.copier.copy(packets, &mut |packet| notes.take(packet)) {
            Err(CopyError::Write(error)) => Err(CopyError::Write(error)),
            Err(error) => {
                self.error = Some(error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}
