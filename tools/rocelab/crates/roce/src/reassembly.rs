// SPDX-License-Identifier: GPL-2.0-or-later
//! Puts IP packets together from their fragments, in bounded memory. Of fragments that overlap none is used
//! (RFC 5722).

use std::collections::VecDeque;

use crate::bytes;
use crate::decode::{Kind, Ports};
use crate::fragment::Fragment;
use crate::header::UDP_LEN;
use crate::link::Link;
use crate::packet::Packet;
use crate::segment::Segment;

/// Packets that wait for fragments; the oldest leaves first.
const MAX_WAITING: usize = 512;
/// Bytes of a packet behind its IP header: those of RoCE have fewer, in tunnels, too.
const MAX_LEN: usize = 8192;
/// Bytes before the fragment in a frame: headers, also those of tunnels.
const MAX_HEAD: usize = 512;
/// Runs of bytes that are known of a packet.
const MAX_RUNS: usize = 64;
/// Fragments come within this time. Later ones may be another packet's, with the same identification.
const MAX_APART_NS: i64 = 1_000_000_000;

/// Which packet a fragment belongs to: where it was seen, its segment, and what its IP header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    place: u64,
    segment: Segment,
    ends: ([u8; 16], [u8; 16], u32),
}

/// Consecutive bytes of a packet that fragments have, and how many of them were captured.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: usize,
    to: usize,
    captured: usize,
}

/// A packet of which not all fragments were seen.
#[derive(Clone, Debug)]
struct Waiting {
    key: Key,
    first_ns: i64,
    /// Its bytes behind the IP header, as far as they are known.
    data: Vec<u8>,
    runs: Vec<Run>,
    /// How many bytes it has, once a fragment says so.
    total: Option<usize>,
    /// The first fragment, and its frame up to its data.
    first: Option<(Fragment, Vec<u8>)>,
    of_roce: bool,
    /// The first fragment came.
    headed: bool,
    /// The last fragment came.
    ended: bool,
    fragments: u32,
    wire_bytes: u64,
    /// Fragments contradict each other, or it is too long for RoCE.
    refused: bool,
}

/// A packet that was put together.
#[derive(Clone, Debug)]
pub struct Whole {
    /// It, as if it had not been fragmented; what was not captured is missing at its end.
    pub frame: Vec<u8>,
    /// Its length.
    pub wire_len: u32,
    /// How many fragments it had.
    pub fragments: u32,
    /// The length of their frames, summed.
    pub wire_bytes: u64,
    /// The first one has the UDP port of RoCE.
    pub of_roce: bool,
}

/// A captured frame that is a fragment.
#[derive(Clone, Copy, Debug)]
pub struct FragmentFrame<'a> {
    /// Its link layer.
    pub link: Link,
    /// The bytes captured.
    pub bytes: &'a [u8],
    /// Its length.
    pub wire_len: u32,
    /// When it was captured, ns since 1970.
    pub time_ns: i64,
    /// Where: fragments that other places saw do not belong to it.
    pub place: u64,
}

/// The packets that wait for fragments.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    waiting: VecDeque<Waiting>,
    /// Packets that left without their first fragment, which alone says whether they are RoCE.
    headless: u64,
}

impl Reassembly {
    /// Packets whose first fragment did not come.
    #[must_use]
    pub fn headless(&self) -> u64 {
        self.headless + self.waiting.iter().filter(|one| !one.headed).count() as u64
    }

    /// Takes a frame, and gives the packet that it completes.
    pub fn add(&mut self, frame: &FragmentFrame<'_>, ports: &Ports) -> Option<Whole> {
        let mut packet = Packet::default();
        let &FragmentFrame { link, bytes, wire_len, time_ns, place } = frame;
        let kind = crate::decode_into(link, bytes, wire_len, ports, &mut packet);
        let Kind::Fragment { of_roce } = kind else { return None };
        let fragment = Fragment::of(bytes, usize::from(packet.l3_off))?;
        let key = Key { place, segment: packet.segment, ends: fragment.id };
        let total = total(&fragment, bytes);
        let too_old = |one: &Waiting| time_ns.saturating_sub(one.first_ns) > MAX_APART_NS;
        let belongs = |one: &Waiting| one.key == key && !too_old(one) && one.agrees(total);
        let at = self.waiting.iter().position(belongs).unwrap_or_else(|| {
            if self.waiting.len() >= MAX_WAITING {
                let oldest = self.waiting.pop_front();
                self.headless += u64::from(oldest.is_some_and(|one| !one.headed));
            }
            self.waiting.push_back(Waiting::new(key, time_ns));
            self.waiting.len() - 1
        });
        let one = self.waiting.get_mut(at)?;
        one.take(fragment, total, frame, of_roce);
        if !one.is_complete() {
            return None;
        }
        self.waiting.remove(at)?.into_whole()
    }
}

/// How many bytes the packet has behind its IP header, if its last or its first fragment says so.
fn total(fragment: &Fragment, frame: &[u8]) -> Option<usize> {
    if !fragment.more {
        return Some(fragment.range.end);
    }
    let udp = fragment.range.start == 0 && fragment.range.end >= UDP_LEN;
    let len = bytes::u16(frame, fragment.data + 4).filter(|_| udp)?;
    (usize::from(len) >= fragment.range.end).then_some(len.into())
}

impl Waiting {
    fn new(key: Key, first_ns: i64) -> Self {
        Self {
            key,
            first_ns,
            data: Vec::new(),
            runs: Vec::new(),
            total: None,
            first: None,
            of_roce: false,
            headed: false,
            ended: false,
            fragments: 0,
            wire_bytes: 0,
            refused: false,
        }
    }

    /// Whether a fragment of a packet of `total` bytes may belong to it.
    fn agrees(&self, total: Option<usize>) -> bool {
        self.refused || total.is_none() || self.total.is_none() || self.total == total
    }

    fn take(
        &mut self,
        fragment: Fragment,
        total: Option<usize>,
        frame: &FragmentFrame<'_>,
        of_roce: bool,
    ) {
        self.headed |= fragment.range.start == 0;
        if self.refused || fragment.range.is_empty() {
            return;
        }
        let range = fragment.range.clone();
        self.total = self.total.or(total);
        self.ended |= !fragment.more;
        let whole_units = !fragment.more || range.len() % 8 == 0;
        let ends = self.total.unwrap_or(MAX_LEN).min(MAX_LEN);
        if !whole_units || range.end > ends || self.ends_after(ends) || fragment.data > MAX_HEAD {
            self.refuse();
            return;
        }
        let rest = frame.bytes.get(fragment.data..).unwrap_or_default();
        let data = rest.get(..range.len().min(rest.len())).unwrap_or_default();
        let at = self.runs.partition_point(|run| run.to <= range.start);
        if let Some(run) = self.runs.get(at).filter(|run| run.from < range.end) {
            let known = self.data.get(range.start..range.start + data.len());
            let again = run.from <= range.start && range.end <= run.to && known == Some(data);
            if !again {
                self.refuse();
            }
            return;
        }
        if self.data.len() < range.end {
            self.data.resize(range.end, 0);
        }
        if let Some(place) = self.data.get_mut(range.start..range.start + data.len()) {
            place.copy_from_slice(data);
        }
        self.insert(at, Run { from: range.start, to: range.end, captured: data.len() });
        self.fragments += 1;
        self.wire_bytes += u64::from(frame.wire_len);
        if range.start == 0 {
            self.of_roce = of_roce;
            let head = frame.bytes.get(..fragment.data).unwrap_or_default().to_vec();
            self.first = Some((fragment, head));
        }
    }

    fn ends_after(&self, end: usize) -> bool {
        self.runs.last().is_some_and(|last| last.to > end)
    }

    /// Adds a run at its place, joined with those next to it if they were captured completely.
    fn insert(&mut self, at: usize, run: Run) {
        self.runs.insert(at, run);
        let all = |run: &Run| run.captured == run.to - run.from;
        self.runs.dedup_by(|next, before| {
            let joined = before.to == next.from && all(before) && all(next);
            if joined {
                before.to = next.to;
                before.captured += next.captured;
            }
            joined
        });
        if self.runs.len() > MAX_RUNS {
            self.refuse();
        }
    }

    /// No fragment of it is used, neither one before nor one that comes.
    fn refuse(&mut self) {
        self.refused = true;
        (self.data, self.runs, self.first) = (Vec::new(), Vec::new(), None);
    }

    fn is_complete(&self) -> bool {
        let ends = |total| {
            self.runs.iter().try_fold(0, |end, run| (run.from == end).then_some(run.to))
                == Some(total)
        };
        self.ended && self.total.is_some_and(ends)
    }

    fn into_whole(self) -> Option<Whole> {
        let total = self.total?;
        let (first, head) = self.first?;
        let mut frame = first.whole_head(&head, total)?;
        let wire_len = u32::try_from(frame.len() + total).ok()?;
        let mut captured = 0;
        for run in &self.runs {
            captured += run.captured;
            if run.captured < run.to - run.from {
                break;
            }
        }
        frame.extend_from_slice(self.data.get(..captured)?);
        let Self { fragments, wire_bytes, of_roce, .. } = self;
        Some(Whole { frame, wire_len, fragments, wire_bytes, of_roce })
    }
}
