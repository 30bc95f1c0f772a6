// SPDX-License-Identifier: GPL-2.0-or-later
//! What all connections together show about the capture: mirrored ports, sampling, clocks of several
//! files.

use std::collections::BTreeMap;

use crate::finding::At;

/// Limit of file pairs whose clocks are compared.
const MAX_CLOCKS: usize = 256;
/// Segments whose copies are counted.
const MAX_SEGMENTS: usize = 1024;
/// Packets needed for a statement about the whole capture.
const MIN_PACKETS: u64 = 50;

/// The clock of one file lags that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// The file whose times are too small.
    pub behind: u16,
    /// The file to which they were compared.
    pub than: u16,
    /// How many responses came before their requests.
    pub count: u64,
    /// The largest such lead, ns; the clocks differ by at least this.
    pub least_ns: u64,
}

/// Counts over all connections, complete at the end of the capture.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Request packets.
    pub requests: u64,
    /// Gaps in their PSNs.
    pub gaps: u64,
    /// PSNs in the gaps.
    pub missing: u64,
    /// By segment: request packets, and those repeated sooner than any sender retransmits.
    segments: BTreeMap<u64, (u64, u64)>,
    /// RoCE packets that IP has fragmented, which are not followed.
    pub fragmented: u64,
    /// READs whose length was not captured.
    pub unknown_reads: u64,
    /// Connections that were older than the capture.
    pub midway: u64,
    /// Clocks that contradict each other.
    pub clocks: Vec<ClockOffset>,
}

impl Evidence {
    /// Notes a response that another file holds, timed before the request that caused it.
    pub(super) fn note_early(&mut self, response: At, request: At) {
        let early = request.time_ns.saturating_sub(response.time_ns);
        let early = u64::try_from(early).unwrap_or(0);
        let (behind, than) = (response.file, request.file);
        let same = |one: &&mut ClockOffset| (one.behind, one.than) == (behind, than);
        if let Some(one) = self.clocks.iter_mut().find(same) {
            one.count += 1;
            one.least_ns = one.least_ns.max(early);
        } else if self.clocks.len() < MAX_CLOCKS {
            self.clocks.push(ClockOffset { behind, than, count: 1, least_ns: early });
        }
    }

    /// Most packets lack their predecessor: one packet in this many was captured.
    #[must_use]
    pub fn sampled(&self) -> Option<u64> {
        let seen = self.requests.max(1);
        let sampled = seen >= MIN_PACKETS && self.gaps * 2 > seen && self.missing > 4 * seen;
        sampled.then(|| (self.missing + seen) / seen)
    }

    /// Counts a segment's request packets, and those repeated sooner than any sender retransmits.
    pub(super) fn note_copies(&mut self, segment: u64, requests: u64, copies: u64) {
        if self.segments.len() >= MAX_SEGMENTS && !self.segments.contains_key(&segment) {
            return;
        }
        let counts = self.segments.entry(segment).or_default();
        *counts = (counts.0 + requests, counts.1 + copies);
    }

    /// Segments of which nearly every request packet appears several times in a row, and how often: a port is
    /// mirrored twice, or the path has several taps.
    #[must_use]
    pub fn looks(&self) -> Vec<(u64, u32)> {
        let often = |(&segment, &(requests, copies)): (&u64, &(u64, u64))| {
            let once = requests.saturating_sub(copies).max(1);
            let mirrored = requests >= MIN_PACKETS && copies * 20 >= requests * 9;
            mirrored.then_some((segment, u32::try_from((requests + once / 2) / once).ok()?))
        };
        self.segments.iter().filter_map(often).collect()
    }
}
