// SPDX-License-Identifier: GPL-2.0-or-later
//! sFlow version 5: headers of packets that switches have sampled. A datagram has several; the first that is
//! RoCE is taken.

use crate::bytes;
use crate::decode::{Kind, Walk};
use crate::segment::Tunnel;

/// What is looked at of a datagram: of 1500 bytes, none has more.
const MAX_SAMPLES: u32 = 32;
const MAX_RECORDS: u32 = 8;
const VERSION: u32 = 5;
const IPV4_AGENT: u32 = 1;
const FLOW_SAMPLE: u32 = 1;
const EXPANDED_FLOW_SAMPLE: u32 = 3;
const RAW_HEADER: u32 = 1;
const ETHERNET: u32 = 1;

impl Walk<'_> {
    pub(crate) fn sflow(&mut self, at: usize) -> Option<Kind> {
        let word = |at| bytes::u32(self.frame, at);
        // samples within samples would multiply
        if self.depth > 0 || word(at)? != VERSION {
            return None;
        }
        let address = if word(at + 4)? == IPV4_AGENT { 4 } else { 16 };
        // sub-agent, sequence number, uptime
        let mut sample = at + 8 + address + 12;
        let samples = word(sample)?.min(MAX_SAMPLES);
        sample += 4;
        for _ in 0..samples {
            let (format, len) = (bytes::u32(self.frame, sample)?, self.length(sample + 4)?);
            // behind the fields there is the number of records
            let records = match format {
                FLOW_SAMPLE => Some(sample + 8 + 28),
                EXPANDED_FLOW_SAMPLE => Some(sample + 8 + 40),
                _ => None,
            };
            if let Some(kind) = records.and_then(|records| self.flow_sample(records)) {
                return Some(kind);
            }
            sample += 8 + len;
        }
        None
    }

    /// The first record with an Ethernet header that is RoCE.
    fn flow_sample(&mut self, at: usize) -> Option<Kind> {
        let records = bytes::u32(self.frame, at)?.min(MAX_RECORDS);
        let mut record = at + 4;
        for _ in 0..records {
            let (format, len) = (bytes::u32(self.frame, record)?, self.length(record + 4)?);
            if format == RAW_HEADER && bytes::u32(self.frame, record + 8)? == ETHERNET {
                let (frame, depth, packet) = (self.frame, self.depth, *self.packet);
                if let Some(kind @ (Kind::Roce | Kind::Cut { .. })) = self.sampled(record + 12) {
                    return Some(kind);
                }
                (self.frame, self.depth, *self.packet) = (frame, depth, packet);
            }
            record += 8 + len;
        }
        None
    }

    /// The header of a sampled frame: its length on the wire, what was stripped (the FCS), its own length.
    fn sampled(&mut self, at: usize) -> Option<Kind> {
        let wire_len = bytes::u32(self.frame, at)?.checked_sub(bytes::u32(self.frame, at + 4)?)?;
        let (header, len) = (at + 12, self.length(at + 8)?);
        // what follows belongs to the datagram, not to the packet
        self.frame = self.frame.get(..header + len)?;
        self.enter(Tunnel::Sflow, 0, header)?;
        self.packet.wire_len = u32::try_from(header).ok()?.checked_add(wire_len)?;
        self.ethernet(header)
    }

    /// A length, which is within the frame.
    fn length(&self, at: usize) -> Option<usize> {
        let len = usize::try_from(bytes::u32(self.frame, at)?).ok()?;
        (len <= self.frame.len()).then_some(len)
    }
}
