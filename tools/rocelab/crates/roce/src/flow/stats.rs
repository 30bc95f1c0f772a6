// SPDX-License-Identifier: GPL-2.0-or-later
//! Statistics of a direction.

use super::costs::{Charge, Costs, Pace};
use crate::finding::At;
use crate::histogram::Histogram;
use crate::packet::{NAK_NAMES, Packet};
use crate::series::{Interval, Series};

/// The largest path MTU of InfiniBand, bytes.
pub(super) const MAX_MTU: u32 = 4096;
/// Intervals kept per direction.
const SERIES_LIMIT: u32 = 64;

/// Retransmitted packets by cause, as far as the capture decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retransmissions {
    /// After a NAK with a PSN sequence error.
    pub after_nak: u64,
    /// After an RNR NAK.
    pub after_rnr: u64,
    /// READ requests reissued from the first missing response.
    pub after_response_gap: u64,
    /// Without any NAK: a timeout (or a NAK that was lost).
    pub after_timeout: u64,
    /// Although the capture shows that they were acknowledged.
    pub spurious: u64,
    /// Undecided.
    pub ambiguous: u64,
}

/// Statistics of the packets of one side. What nearly all packets change comes first: of thousands of
/// directions, most are in no cache.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Stats {
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire (without preamble and FCS).
    pub wire_bytes: u64,
    /// Message bytes of all data packets.
    pub payload_bytes: u64,
    /// Packets by ECN codepoint: not-ECT, ECT(1), ECT(0), CE.
    pub ecn: [u64; 4],
    /// Complete data messages (SEND, WRITE, ATOMIC WRITE, READ response).
    pub messages: u64,
    /// Message bytes of complete messages, without retransmissions.
    pub goodput_bytes: u64,
    /// Positive acknowledgements.
    pub acks: u64,
    /// Messages that they acknowledge; more messages than ACKs means coalescing.
    pub acked_messages: u64,
    /// Largest number of unacknowledged PSNs.
    pub max_outstanding: u32,
    /// Path MTU, from first and middle packets; 0: unknown.
    pub pmtu: u32,
    /// The path MTU is a guess from the PSN after a READ; a lost packet may explain that PSN too.
    pub(crate) pmtu_guessed: bool,
    /// DSCP of the first packet.
    pub dscp: u8,
    /// Smallest and largest credit code of the acknowledgements; 31: no limit.
    pub credits: Option<(u8, u8)>,
    /// How the time of its requests passed.
    pub pace: Pace,
    /// Over time.
    pub series: Series,
    /// From the last request packet of a message to its response.
    pub latency: Histogram,
    /// Most READs and atomics that were not answered, and the request with which they were so many.
    pub max_reads: u32,
    /// See [`Self::max_reads`].
    pub deepest_read: At,
    /// Messages with packets that were never captured.
    pub incomplete: u64,
    /// READ, atomic and FLUSH requests, without retransmissions.
    pub requests: u64,
    /// Retransmitted data packets; duplicates and reordered packets do not count.
    pub retransmitted: u64,
    /// Retransmitted packets without payload.
    pub retransmitted_requests: u64,
    /// Retransmissions by cause; duplicates and reordered packets are not among them.
    pub retransmissions: Retransmissions,
    /// Packets captured twice without the sender going back.
    pub duplicates: u64,
    /// Gaps in the PSNs.
    pub gaps: u64,
    /// PSNs in the gaps, without those of reordered packets.
    pub missing: u64,
    /// Those that the receiver acknowledged: the capture lost them.
    pub missed: u64,
    /// Late packets that fill a gap, without the sender going back.
    pub out_of_order: u64,
    /// Largest lateness of such a packet, in PSNs.
    pub reorder_depth: u32,
    /// Longest time by which a reordered packet follows its successor, ns.
    pub(crate) reorder_ns: u64,
    /// NAKs by code; the last entry counts all reserved codes.
    pub naks: [u64; NAK_NAMES.len()],
    /// RNR NAKs.
    pub rnr: u64,
    /// Smallest and largest RNR timer, ns.
    pub rnr_timer_ns: Option<(u64, u64)>,
    /// Congestion notifications.
    pub cnp: u64,
    /// Shortest time between two congestion notifications, ns.
    pub cnp_min_gap_ns: Option<u64>,
    pub(crate) cnp_last_ns: Option<i64>,
    /// What delayed its requests; `None`: nothing did.
    pub costs: Option<Box<Costs>>,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            packets: 0,
            wire_bytes: 0,
            payload_bytes: 0,
            goodput_bytes: 0,
            messages: 0,
            incomplete: 0,
            requests: 0,
            retransmitted: 0,
            retransmitted_requests: 0,
            retransmissions: Retransmissions::default(),
            duplicates: 0,
            gaps: 0,
            missing: 0,
            missed: 0,
            reorder_depth: 0,
            reorder_ns: 0,
            out_of_order: 0,
            acks: 0,
            acked_messages: 0,
            naks: [0; NAK_NAMES.len()],
            rnr: 0,
            rnr_timer_ns: None,
            credits: None,
            max_outstanding: 0,
            max_reads: 0,
            deepest_read: At::default(),
            ecn: [0; 4],
            cnp: 0,
            cnp_min_gap_ns: None,
            cnp_last_ns: None,
            costs: None,
            pace: Pace::default(),
            dscp: 0,
            pmtu: 0,
            pmtu_guessed: false,
            latency: Histogram::default(),
            series: Series::new(SERIES_LIMIT),
        }
    }
}

impl Stats {
    /// Reads what each packet changes.
    #[inline]
    pub(super) fn look(&self) -> u64 {
        let lines = [self.packets, self.messages, self.acked_messages, self.pace.idle_ns];
        let later = [self.pmtu.into(), self.series.step_ns as u64, self.latency.count()];
        lines.iter().chain(&later).fold(0, |sum, one| sum ^ one)
    }

    /// Charges a time to what caused it.
    #[cold]
    pub(super) fn charge(&mut self, charge: Charge) {
        self.costs.get_or_insert_default().add(charge);
    }

    /// Counts the time to the response of a message that was sent again.
    #[cold]
    pub(super) fn note_delayed(&mut self, ns: u64) {
        self.costs.get_or_insert_default().delayed.add(ns);
    }

    /// Takes back packets that [`Self::count_passed`] counted: they were not retransmitted.
    pub(crate) fn uncount_passed(&mut self, data: u64, others: u64) {
        self.retransmitted = self.retransmitted.saturating_sub(data);
        self.retransmitted_requests = self.retransmitted_requests.saturating_sub(others);
    }

    /// Adds retransmitted data packets to the series.
    pub(crate) fn count_again(&mut self, time_ns: i64, data: u64) {
        let retransmitted = u32::try_from(data).unwrap_or(u32::MAX);
        self.series.add(time_ns, Interval { packets: 0, retransmitted, payload_bytes: 0 });
    }

    #[inline]
    pub(crate) fn count(&mut self, packet: &Packet, time_ns: i64, is_data: bool) {
        let payload_bytes = if is_data { u64::from(packet.payload_len) } else { 0 };
        if self.packets == 0 {
            self.dscp = packet.dscp();
        }
        self.packets += 1;
        self.wire_bytes += u64::from(packet.wire_len);
        self.payload_bytes += payload_bytes;
        self.ecn[usize::from(packet.ecn())] += 1;
        self.series.add(time_ns, Interval { packets: 1, retransmitted: 0, payload_bytes });
    }

    /// Notes the credit code of an acknowledgement.
    #[inline]
    pub(crate) fn note_credit(&mut self, credit: u8) {
        let (min, max) = self.credits.unwrap_or((credit, credit));
        self.credits = Some((min.min(credit), max.max(credit)));
    }

    /// Corrects a guessed path MTU that is less than the payload of a packet.
    #[inline]
    pub(crate) fn correct_pmtu(&mut self, payload_len: u32) {
        if self.pmtu_guessed && payload_len > self.pmtu {
            self.pmtu = payload_len.next_power_of_two().min(MAX_MTU);
        }
    }

    /// The shortest time from a request to its response; 50 µs, less than any timer, if there is none.
    pub(crate) fn least_latency_ns(&self) -> u64 {
        if self.latency.count() == 0 { 50_000 } else { self.latency.quantile(0.0) }
    }

    pub(crate) fn count_cnp(&mut self, time_ns: i64) {
        self.cnp += 1;
        if let Some(last) = self.cnp_last_ns {
            let gap = u64::try_from(time_ns.saturating_sub(last)).unwrap_or(0);
            self.cnp_min_gap_ns = Some(self.cnp_min_gap_ns.map_or(gap, |min| min.min(gap)));
        }
        self.cnp_last_ns = Some(time_ns);
    }

    pub(crate) fn count_passed(&mut self, is_data: bool) {
        if is_data {
            self.retransmitted += 1;
        } else {
            self.retransmitted_requests += 1;
        }
    }
}
