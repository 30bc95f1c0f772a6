// SPDX-License-Identifier: GPL-2.0-or-later
//! What all connections together show about the capture: mirrored ports, sampling, clocks of several
//! files.

use crate::finding::At;

/// Limit of file pairs whose clocks are compared.
const MAX_CLOCKS: usize = 256;
/// Packets needed for a statement about the whole capture.
const LEAST: u64 = 50;

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
    /// Request packets repeated sooner than any sender retransmits.
    pub copies: u64,
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
        let sampled = seen >= LEAST && self.gaps * 2 > seen && self.missing > 4 * seen;
        sampled.then(|| (self.missing + seen) / seen)
    }

    /// Nearly every request packet appears twice in a row: a port is mirrored twice, or the path has two
    /// taps.
    #[must_use]
    pub fn mirrored(&self) -> bool {
        self.requests >= LEAST && self.copies * 20 >= self.requests * 9
    }
}
