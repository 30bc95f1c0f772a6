// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts what a capture of an Ethernet link holds: kinds of frames, message bytes. Nothing is verified or
//! followed, so that a proof of transport does not rest on the analysis.
//!
//! `ebpf/linktap/count.c` counts in the same way what its capture does not keep.

use std::collections::HashSet;

use roce::opcode::{self, Class, Opcode, Service};
use roce::{GRH_LEN, ICRC_LEN, Link, ROCE_PORT};

use crate::ethernet::u16_at;
use crate::read::{Block, Input, ReadError, Reader};

/// Bytes read at a time.
const PIECE: usize = 1 << 20;
const VLAN: [u16; 2] = [0x8100, 0x88a8];
const ROCE_V1: u16 = 0x8915;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ETHERNET_LEN: usize = 14;
const IPV6_LEN: usize = 40;
const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 0x02;
/// Both frames that begin an iWARP connection (RFC 5044, 7.1.1): "MPA ID Req Frame", "… Rep Frame".
const MPA: &[u8] = b"MPA ID Re";
/// iWARP connections that are told from TCP; a benchmark has one per process.
const MAX_CONNECTIONS: usize = 1 << 16;

/// Both ends of a TCP connection, the smaller first.
type Connection = [Vec<u8>; 2];

/// What was counted; docs/formats/run.md describes each number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of cell.json")]
pub struct FrameCounts {
    pub frames: u64,
    pub bytes: u64,
    pub roce_v1: u64,
    pub roce_v2: u64,
    pub roce_data: u64,
    pub roce_data_bytes: u64,
    pub roce_payload_bytes: u64,
    pub tcp: u64,
    pub tcp_data: u64,
    pub tcp_data_bytes: u64,
    pub tcp_payload_bytes: u64,
    pub iwarp: u64,
    pub iwarp_data: u64,
    pub iwarp_data_bytes: u64,
    pub iwarp_payload_bytes: u64,
    pub control: u64,
    pub control_payload_bytes: u64,
    pub other: u64,
    pub undecoded: u64,
}

/// Counts the frames of a capture that is not compressed. TCP on `control_ports` is not the benchmark's.
///
/// # Errors
/// If the capture cannot be read to its end, or is of another link layer.
pub fn count_frames(input: Input, control_ports: &[u16]) -> Result<FrameCounts, ReadError> {
    let mut reader = Reader::new(input, 0, PIECE);
    let mut block = Block::default();
    let mut counter =
        Counter { control_ports, mpa: HashSet::new(), counts: FrameCounts::default() };
    // an empty block: a signal came
    while reader.fill(&mut block)? {
        for record in &block.records {
            if record.link != Link::Ethernet {
                return Err(ReadError::Reported(format!(
                    "its link type is {}",
                    record.link.number()
                )));
            }
            counter.add(block.frame(record), u64::from(record.wire_len));
        }
    }
    Ok(counter.counts)
}

struct Counter<'a> {
    control_ports: &'a [u16],
    /// The connections that iWARP has begun.
    mpa: HashSet<Connection>,
    counts: FrameCounts,
}

impl Counter<'_> {
    /// `len`: bytes on the link, of which `frame` was captured.
    fn add(&mut self, frame: &[u8], len: u64) {
        self.counts.frames += 1;
        self.counts.bytes += len;
        if self.add_ethernet(frame, len).is_none() {
            // cut off by the snap length, or by a broken sender
            self.counts.undecoded += 1;
        }
    }

    /// `None`: a byte was wanted that is not there.
    fn add_ethernet(&mut self, frame: &[u8], len: u64) -> Option<()> {
        let mut at = ETHERNET_LEN;
        let mut ethertype = u16_at(frame, at - 2)?;
        while VLAN.contains(&ethertype) {
            ethertype = u16_at(frame, at + 2)?;
            at += 4;
        }
        match ethertype {
            ROCE_V1 => {
                let payload = u16_at(frame, at + 4)?;
                self.counts.roce_v1 += 1;
                self.add_roce(frame, at + GRH_LEN, payload.into(), len)
            }
            IPV4 if !is_later_fragment(frame, at)? => {
                let header = (*frame.get(at)? & 15) as usize * 4;
                let payload = i64::from(u16_at(frame, at + 2)?) - header as i64;
                let protocol = *frame.get(at + 9)?;
                let ends = [at + 12, at + 16, at + 20];
                self.add_ip(frame, protocol, ends, at + header, payload, len)
            }
            IPV6 => {
                let payload = u16_at(frame, at + 4)?;
                let protocol = *frame.get(at + 6)?;
                let ends = [at + 8, at + 24, at + IPV6_LEN];
                self.add_ip(frame, protocol, ends, at + IPV6_LEN, payload.into(), len)
            }
            _ => {
                self.counts.other += 1;
                Some(())
            }
        }
    }

    /// `ends`: where both addresses begin, and where the second ends; `at` and `payload`: of what follows the
    /// IP header.
    fn add_ip(
        &mut self,
        frame: &[u8],
        protocol: u8,
        ends: [usize; 3],
        at: usize,
        payload: i64,
        len: u64,
    ) -> Option<()> {
        match protocol {
            TCP => self.add_tcp(frame, ends, at, payload, len),
            UDP if u16_at(frame, at + 2)? == ROCE_PORT => {
                self.counts.roce_v2 += 1;
                self.add_roce(frame, at + 8, payload - 8, len)
            }
            _ => {
                self.counts.other += 1;
                Some(())
            }
        }
    }

    fn add_tcp(
        &mut self,
        frame: &[u8],
        ends: [usize; 3],
        at: usize,
        payload: i64,
        len: u64,
    ) -> Option<()> {
        let header = (*frame.get(at + 12)? >> 4) as usize * 4;
        let carried = u64::try_from(payload - header as i64).unwrap_or(0);
        let ports = [u16_at(frame, at)?, u16_at(frame, at + 2)?];
        let counts = &mut self.counts;
        if ports.iter().any(|port| self.control_ports.contains(port)) {
            counts.control += 1;
            counts.control_payload_bytes += carried;
            return Some(());
        }
        let begins = carried > MPA.len() as u64
            && frame.get(at + header..).is_some_and(|body| body.starts_with(MPA));
        let iwarp =
            (begins || !self.mpa.is_empty()) && is_iwarp(&mut self.mpa, frame, ends, at, begins)?;
        let (segments, data, data_bytes, payload_bytes) = match iwarp {
            true => (
                &mut counts.iwarp,
                &mut counts.iwarp_data,
                &mut counts.iwarp_data_bytes,
                &mut counts.iwarp_payload_bytes,
            ),
            false => (
                &mut counts.tcp,
                &mut counts.tcp_data,
                &mut counts.tcp_data_bytes,
                &mut counts.tcp_payload_bytes,
            ),
        };
        *segments += 1;
        if carried > 0 {
            *data += 1;
            *data_bytes += len;
            *payload_bytes += carried;
        }
        Some(())
    }

    /// `payload`: bytes from the BTH to the ICRC, both included.
    fn add_roce(&mut self, frame: &[u8], at: usize, payload: i64, len: u64) -> Option<()> {
        let code = *frame.get(at)?;
        let op = opcode::lookup(code);
        if op.is_some_and(|op| op.class == Class::Congestion) {
            // no connection's, and without a message
            return Some(());
        }
        let pad = *frame.get(at + 1)? >> 4 & 3;
        match op.filter(|op| matches!(op.service(), Service::Rc | Service::Uc | Service::Ud)) {
            None => self.counts.undecoded += 1,
            Some(op) if has_message(op) => {
                let overhead = usize::from(op.header_len + pad) + ICRC_LEN;
                let carried = u64::try_from(payload - overhead as i64).unwrap_or(0);
                self.counts.roce_data += 1;
                self.counts.roce_data_bytes += len;
                self.counts.roce_payload_bytes += carried;
            }
            Some(_) => {}
        }
        Some(())
    }
}

/// A later fragment has no transport header, and counts as other.
fn is_later_fragment(frame: &[u8], at: usize) -> Option<bool> {
    Some(*frame.get(at + 6)? & 0x1f != 0 || *frame.get(at + 7)? != 0)
}

/// It carries or begins a message: requests for data and answers without data do neither.
fn has_message(op: &Opcode) -> bool {
    op.is_data() || op.class == Class::Atomic
}

/// Whether a segment, whose TCP header is at `at`, is of a connection begun by MPA; it begins one if `begins`
/// is set. The handshake before it counts as TCP, which it is.
fn is_iwarp(
    mpa: &mut HashSet<Connection>,
    frame: &[u8],
    [one, other, end]: [usize; 3],
    at: usize,
    begins: bool,
) -> Option<bool> {
    let flags = *frame.get(at + 13)?;
    let mut connection = [
        [frame.get(one..other)?, frame.get(at..at + 2)?].concat(),
        [frame.get(other..end)?, frame.get(at + 2..at + 4)?].concat(),
    ];
    connection.sort_unstable();
    if flags & SYN != 0 {
        mpa.remove(&connection);
        return Some(false);
    }
    if begins && mpa.len() < MAX_CONNECTIONS {
        mpa.insert(connection);
        return Some(true);
    }
    Some(mpa.contains(&connection))
}
