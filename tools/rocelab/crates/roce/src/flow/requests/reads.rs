// SPDX-License-Identifier: GPL-2.0-or-later
//! READs and atomics, which only their own responses complete: the PSNs that they span by the path MTU,
//! and reissued READs.

use super::{Request, Requests};
use crate::finding::{At, Rule};
use crate::flow::context::Context;
use crate::flow::psn;
use crate::flow::stats::Stats;
use crate::opcode::Class;
use crate::packet::Reth;

const MAX_READS: usize = 256;
/// Answered READs that are kept.
const KEPT_READS: usize = MAX_READS / 2;
/// The length of a READ whose RETH was not captured.
pub(super) const UNKNOWN_LEN: u32 = u32::MAX;
/// The most PSNs that a READ of unknown length may span: 1 GiB by the smallest path MTU.
const MAX_SPAN: i32 = 1 << 22;
pub(super) const PATH_MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];

/// The PSNs of a READ or an atomic, and its request.
#[derive(Clone, Copy, Debug)]
pub(in crate::flow) struct Read {
    pub(in crate::flow) psn: u32,
    pub(in crate::flow) end: u32,
    /// `None`: an atomic.
    pub(in crate::flow) reth: Option<Reth>,
    pub(in crate::flow) at: At,
    /// The first PSN from which it was reissued.
    again: Option<u32>,
    /// Whether an unrequested replay was reported.
    told: bool,
}

impl Read {
    /// Whether the response with this PSN was requested more than once.
    pub(in crate::flow) fn asked_again(&self, at: u32) -> bool {
        self.again.is_some_and(|again| !psn::before(at, again))
    }
}

impl Requests {
    /// Whether any READ or atomic is kept.
    #[inline]
    pub(in crate::flow) fn has_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    /// READs and atomics that end behind PSN `from` and not behind `to`: first PSN, and the one after the
    /// last.
    pub(in crate::flow) fn reads_between(
        &self,
        from: u32,
        to: u32,
    ) -> impl Iterator<Item = (u32, u32)> + '_ {
        let some = !self.reads.is_empty() && psn::before(from, self.reads_end);
        let reads = some.then(|| self.reads.iter()).into_iter().flatten();
        // what was acknowledged before the capture had it was also answered before
        let new = move |read: &Read| self.early.is_none_or(|early| psn::before(early, read.psn));
        let within = move |read: &&Read| {
            psn::before(from, read.end) && !psn::before(to, read.end) && new(read)
        };
        reads.filter(within).map(|read| (read.psn, read.end))
    }

    /// Whether no READ or atomic is kept that ends behind this PSN, and none is to be forgotten.
    #[inline]
    pub(super) fn answered_reads(&self, at: u32) -> bool {
        self.reads.is_empty()
            || (!psn::before(at, self.reads_end) && self.reads.len() <= KEPT_READS)
    }

    /// The READ to whose responses a PSN belongs.
    pub(in crate::flow) fn read_at(&self, at: u32) -> Option<Read> {
        if self.reads.is_empty() || !psn::before(at, self.reads_end) {
            return None;
        }
        let within = |read: &&Read| !psn::before(at, read.psn) && psn::before(at, read.end);
        self.reads.iter().rev().find(within).copied()
    }

    fn read_mut(&mut self, at: u32) -> Option<&mut Read> {
        let within = |read: &&mut Read| !psn::before(at, read.psn) && psn::before(at, read.end);
        self.reads.iter_mut().rev().find(within)
    }

    /// Whether to report that the response with this PSN came again unrequested; once per READ.
    pub(in crate::flow) fn tells_replay(&mut self, at: u32) -> bool {
        self.read_mut(at)
            .is_some_and(|read| !read.asked_again(at) && !std::mem::replace(&mut read.told, true))
    }

    pub(super) fn span(&self, request: &Request, pmtu: u32) -> u32 {
        match (request.op.class, request.reth) {
            (Class::ReadRequest, Some(reth)) if pmtu > 0 => reth.len.div_ceil(pmtu).max(1),
            // the PSNs of a READ that falls into a gap are in the gap
            (Class::ReadRequest, Some(reth)) => {
                let hole = self.hole_at(request.psn).and_then(|index| self.holes.get(index));
                let room = hole.map_or(1, |hole| psn::diff(hole.to, request.psn).unsigned_abs());
                let spans = PATH_MTUS.map(|mtu| reth.len.div_ceil(mtu).max(1));
                let exact = spans.into_iter().find(|&span| span == room);
                exact.or(spans.into_iter().find(|&span| span < room)).unwrap_or(1)
            }
            _ => 1,
        }
    }

    /// Derives the path MTU from the PSN after a READ, if no data packet has shown it yet.
    pub(super) fn close_open_read(&mut self, to: u32, stats: &mut Stats) -> bool {
        let Some((from, len)) = self.open_read.take() else { return false };
        if len == UNKNOWN_LEN {
            // a packet lost after the READ cannot be told from the READ's own PSNs
            let fits = psn::diff(to, from) < MAX_SPAN;
            if fits {
                if self.cursor == self.next {
                    self.cursor = to;
                }
                self.next = to;
                self.note_inexact();
            }
            return fits;
        }
        let fits = |&mtu: &u32| psn::add(from, len.div_ceil(mtu)) == to;
        let Some(mtu) = PATH_MTUS.into_iter().rev().find(fits) else { return false };
        self.set_span(from, len, mtu);
        stats.pmtu = mtu;
        stats.pmtu_guessed = true;
        true
    }

    fn set_span(&mut self, from: u32, len: u32, mtu: u32) {
        let end = psn::add(from, len.div_ceil(mtu).max(1));
        if self.cursor == self.next {
            self.cursor = end;
        }
        self.next = end;
        if let Some(read) = self.reads.iter_mut().rev().find(|read| read.psn == from) {
            read.end = end;
            self.note_reads_end(end);
        }
    }

    /// Takes the path MTU as the direction knows it now.
    #[inline]
    pub(in crate::flow) fn note_mtu(&mut self, mtu: u32) {
        if mtu != self.mtu {
            self.learn_mtu(mtu);
        }
    }

    /// Recomputes the spans of earlier READs when the path MTU becomes known.
    pub(super) fn learn_mtu(&mut self, mtu: u32) {
        self.mtu = mtu;
        self.idle = false;
        self.quiet = false;
        if mtu == 0 {
            return;
        }
        if let Some((from, len)) = self.open_read.take_if(|&mut (_, len)| len != UNKNOWN_LEN) {
            self.set_span(from, len, mtu);
        }
        for index in 0..self.reads.len() {
            let Some(read) = self.reads.get_mut(index) else { break };
            let short = read.end;
            let Some(reth) = read.reth else { continue };
            let end = psn::add(read.psn, reth.len.div_ceil(mtu).max(1));
            if psn::before(short, end) {
                read.end = end;
                self.note_reads_end(end);
                self.fill_hole(short, end);
                if self.cursor == short {
                    self.cursor = end;
                }
                if let Some(resent) = self.retransmission.as_mut().filter(|one| one.pos == short) {
                    resent.pos = end;
                }
            } else if psn::before(end, short) {
                // the guessed MTU was too small: a PSN attributed to the READ is a missing packet's
                read.end = end;
                self.note_skipped(end, short, true);
                self.note_inexact();
                self.assembly.doubt();
            }
        }
    }

    pub(super) fn note_read(
        &mut self,
        request: &Request,
        span: u32,
        pmtu: u32,
        context: &mut Context<'_>,
    ) {
        if request.reth.is_none() && request.op.class == Class::ReadRequest {
            return;
        }
        let passed = psn::before(request.psn, self.next);
        if let Some(read) = self.read_mut(request.psn).filter(|_| passed) {
            let again = read.again.filter(|&again| psn::before(again, request.psn));
            read.again = again.or(Some(request.psn));
            let read = *read;
            let (Some(reth), Some(first)) = (request.reth, read.reth) else { return };
            let behind = psn::diff(request.psn, read.psn).unsigned_abs();
            let skipped = u64::from(behind) * u64::from(pmtu);
            let right = reth.va == first.va.wrapping_add(skipped)
                && u64::from(reth.len) + skipped == u64::from(first.len);
            if !right && (pmtu > 0 || behind == 0) {
                context.find(Rule::ReadReissue, request.at, false, || {
                    format!(
                        "READ reissued at PSN {} for {} bytes at {:#x}; the READ at PSN {} asked \
                         for {} at {:#x}",
                        request.psn, reth.len, reth.va, read.psn, first.len, first.va
                    )
                });
            }
            return;
        }
        if self.reads.len() >= MAX_READS {
            self.reads.pop_front();
        }
        let end = psn::add(request.psn, span);
        if passed {
            self.note_reads_end(end);
        } else {
            self.reads_end = end;
        }
        let Request { psn, at, reth, .. } = *request;
        let read = Read { psn, end, reth, at, again: None, told: false };
        self.reads.push_back(read);
    }

    /// Counts what is outstanding with this request.
    pub(super) fn note_depth(&self, request: &Request, stats: &mut Stats) {
        let open = |read: &&Read| psn::before(self.acked, read.end);
        let depth = self.reads.iter().rev().take_while(open).count() as u32;
        if depth > stats.max_reads {
            stats.max_reads = depth;
            stats.deepest_read = request.at;
        }
    }

    /// What may be wrong with the READ or atomic of this PSN, which was refused or not answered.
    pub(in crate::flow) fn depth_hint(&self, at: u32, stats: &Stats) -> String {
        let several = stats.max_reads > 1 && self.read_at(at).is_some();
        let hint = || {
            format!(
                "; up to {} READs and atomics were outstanding: more than the responder's resources?",
                stats.max_reads
            )
        };
        if several { hint() } else { String::new() }
    }

    fn note_reads_end(&mut self, end: u32) {
        if psn::before(self.reads_end, end) {
            self.reads_end = end;
        }
    }

    /// Keeps answered READs for a while, because their responses may be retransmitted.
    pub(super) fn forget_reads(&mut self, acked: u32) {
        while let Some(read) = self.reads.front() {
            if self.reads.len() <= KEPT_READS || psn::before(acked, read.end) {
                break;
            }
            self.reads.pop_front();
        }
    }
}
