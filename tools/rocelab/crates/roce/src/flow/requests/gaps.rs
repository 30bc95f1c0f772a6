// SPDX-License-Identifier: GPL-2.0-or-later
//! Gaps in the capture, and the packets held back after them.

use super::reads::PATH_MTUS;
use super::{Request, Requests};
use crate::finding::{At, Lost, Rule};
use crate::flow::assembly::Piece;
use crate::flow::context::Context;
use crate::flow::psn;
use crate::flow::stats::Stats;
use crate::opcode::Class;

/// Limit of packets held back after a gap; beyond it the gap is abandoned.
const MAX_AHEAD: usize = 512;
pub(super) const MAX_HOLES: usize = 64;
const MAX_FILLED: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) at: At,
    pub(super) told: bool,
    /// It is not from the time of the first packets, of which some may have come before the capture.
    pub(super) sure: bool,
}

impl Requests {
    /// Whether the capture has a packet with this PSN.
    pub(super) fn seen(&self, at: u32) -> bool {
        let passed = psn::before(at, self.cursor) && !psn::before(at, self.origin);
        passed || self.find_ahead(at).is_ok()
    }

    pub(super) fn hole_at(&self, at: u32) -> Option<usize> {
        let within = |hole: &Hole| !psn::before(at, hole.from) && psn::before(at, hole.to);
        self.holes.iter().position(within)
    }

    fn find_ahead(&self, at: u32) -> Result<usize, usize> {
        self.ahead.binary_search_by(|piece| psn::diff(piece.psn, at).cmp(&0))
    }

    /// Notes PSNs that were captured only when they were sent again.
    pub(super) fn note_filled(&mut self, from: u32, to: u32, time_ns: i64) {
        if let Some(last) = self.filled.back_mut().filter(|last| last.1 == from) {
            (last.1, last.2) = (to, time_ns);
            return;
        }
        if self.filled.len() >= MAX_FILLED {
            self.filled.pop_front();
        }
        self.filled.push_back((from, to, time_ns));
    }

    /// Whether a response at this time may be older than the only copy of a PSN that was captured.
    pub(super) fn just_filled(&self, at: u32, time_ns: i64, least_latency_ns: u64) -> bool {
        let soon = i64::try_from(least_latency_ns.saturating_mul(2)).unwrap_or(i64::MAX);
        self.filled.iter().any(|&(from, to, filled_ns)| {
            let within = !psn::before(at, from) && psn::before(at, to);
            within && time_ns.saturating_sub(filled_ns) < soon
        })
    }

    pub(super) fn fill_hole(&mut self, at: u32, end: u32) {
        let Some(index) = self.hole_at(at) else { return };
        let Some(hole) = self.holes.remove(index) else { return };
        if psn::before(end, hole.to) {
            self.holes.insert(index, Hole { from: end, ..hole });
        }
        if hole.from != at && self.holes.len() < MAX_HOLES {
            self.holes.insert(index, Hole { to: at, ..hole });
        }
    }

    pub(super) fn feed(
        &mut self,
        request: &Request,
        span: u32,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        let is_long = request.op.class == Class::ReadRequest
            && request.reth.is_none_or(|reth| reth.len > PATH_MTUS[0]);
        let piece = Piece {
            psn: request.psn,
            span,
            exact: !is_long || stats.pmtu > 0 && !stats.pmtu_guessed,
            op: request.op,
            bytes: request.bytes,
            wire: request.wire,
            more_frames: request.more_frames,
            reth_len: request.reth.map(|reth| reth.len),
            at: request.at,
        };
        if piece.psn == self.cursor {
            self.assembly.take(&piece, stats, context);
            self.cursor = psn::add(piece.psn, span);
            self.drain(stats, context);
        } else if let Err(index) = self.find_ahead(piece.psn) {
            self.ahead.insert(index, piece);
            if self.ahead.len() > MAX_AHEAD {
                self.skip_hole(stats, context);
            }
        }
    }

    fn drain(&mut self, stats: &mut Stats, context: &mut Context<'_>) {
        while let Some(piece) = self.ahead.front().copied() {
            if psn::before(self.cursor, piece.psn) {
                break;
            }
            self.ahead.pop_front();
            if piece.psn == self.cursor {
                self.assembly.take(&piece, stats, context);
                self.cursor = psn::add(piece.psn, piece.span);
            } else {
                // it falls into a READ whose span was a guess
                self.assembly.doubt();
            }
        }
        // a READ's span may have become known after its piece was kept
        if self.ahead.is_empty() && self.holes.is_empty() {
            self.cursor = self.next;
        }
    }

    pub(super) fn skip_hole(&mut self, stats: &mut Stats, context: &mut Context<'_>) {
        if let Some(front) = self.ahead.front() {
            self.cursor = front.psn;
            self.assembly.skip(stats);
            self.drain(stats, context);
        }
    }

    /// Closes gaps whose packets the receiver acknowledged: the capture lost them.
    pub(super) fn pass_holes(
        &mut self,
        to: u32,
        at: At,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        while let Some(hole) = self.holes.front().copied() {
            if psn::before(to, hole.from) {
                break;
            }
            self.holes.pop_front();
            self.note_inexact();
            let behind = psn::add(to, 1);
            let end = if psn::before(behind, hole.to) { behind } else { hole.to };
            stats.missed += u64::from(psn::diff(end, hole.from).unsigned_abs());
            let last = psn::add(end, u32::MAX);
            context.find(Rule::CaptureGap, hole.at, !hole.sure, || {
                format!(
                    "PSNs {} to {last} were not captured, yet packet {} acknowledges them: the \
                     capture lost them{}",
                    hole.from,
                    at.packet,
                    if hole.sure { "" } else { ", or they came before it began" }
                )
            });
            if psn::before(behind, hole.to) {
                self.holes.push_front(Hole { from: behind, ..hole });
                break;
            }
            if !psn::before(self.cursor, hole.from) {
                self.skip_hole(stats, context);
            }
        }
    }

    pub(super) fn give_up_hole(&mut self, context: &mut Context<'_>) {
        let Some(hole) = self.holes.pop_front().filter(|hole| !hole.told) else { return };
        let last = psn::add(hole.to, u32::MAX);
        let lost = Lost { psn: hole.from, side: None, is_response: false };
        context.find_loss(lost, hole.at, true, || {
            format!(
                "PSNs {} to {last} were not captured; nothing shows whether they arrived",
                hole.from
            )
        });
    }
}
