// SPDX-License-Identifier: GPL-2.0-or-later
//! pcapng (draft-ietf-opsawg-pcapng): sections, interfaces, timestamp resolutions, comments.

use roce::Link;

use super::parse_step::Step;
use super::pcap::{MAX_FCS, MAX_RECORD};
use super::read_error::ReadError;
use super::record_block::{NO_COMMENT, Record};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET_OBSOLETE: u32 = 2;
const PACKET_SIMPLE: u32 = 3;
const PACKET_ENHANCED: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const OPT_COMMENT: u16 = 1;
const OPT_TSRESOL: u16 = 9;
const OPT_FCSLEN: u16 = 13;
const OPT_TSOFFSET: u16 = 14;
/// The length of a block's type and its two lengths.
const FRAME: usize = 12;
/// The fields of an enhanced packet block before the packet.
const ENHANCED_FIXED: usize = 20;
const MAX_INTERFACES: usize = 1 << 16;

#[derive(Clone, Copy)]
struct Interface {
    link: Link,
    snap: u32,
    /// `if_tsresol`: the high bit chooses powers of two.
    resolution: u8,
    /// Seconds to add.
    offset: i64,
    /// Bytes of the frame check sequence behind each frame.
    fcs: u32,
}

impl Interface {
    #[inline]
    fn time_ns(&self, ticks: u64) -> i64 {
        let shift = u32::from(self.resolution & 0x7f);
        let ns = if self.resolution & 0x80 != 0 {
            // 2^-127 s is legal, and finer than any clock
            (u128::from(ticks) * 1_000_000_000).checked_shr(shift).unwrap_or(0)
        } else if shift <= 9 {
            u128::from(ticks) * 10_u128.pow(9 - shift)
        } else {
            10_u64.checked_pow(shift - 9).map_or(0, |unit| u128::from(ticks / unit))
        };
        i64::try_from(ns)
            .unwrap_or(i64::MAX)
            .saturating_add(self.offset.saturating_mul(1_000_000_000))
    }
}

#[derive(Default)]
pub(super) struct PcapNg {
    big: bool,
    interfaces: Vec<Interface>,
    last_ns: i64,
}

impl PcapNg {
    /// A section header's type reads the same in either byte order.
    pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

    #[inline]
    fn u32(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let raw = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) })
    }

    #[inline]
    fn u16(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let raw = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.big { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) })
    }

    pub(super) fn step(
        &mut self,
        bytes: &[u8],
        at: usize,
        file: u16,
        packets: &mut u64,
        records: &mut Vec<Record>,
    ) -> Result<Step, ReadError> {
        let corrupt = |what| Err(ReadError::Corrupt { packet: *packets, what });
        let Some(kind) = self.u32(bytes, 0) else { return Ok(Step::Need(FRAME)) };
        if kind == SECTION {
            let Some(magic) = self.u32(bytes, 8) else { return Ok(Step::Need(FRAME)) };
            if magic == BYTE_ORDER.swap_bytes() {
                self.big = !self.big;
            } else if magic != BYTE_ORDER {
                return corrupt("a section without its byte-order magic");
            }
            self.interfaces.clear();
        }
        let Some(len) = self.u32(bytes, 4) else { return Ok(Step::Need(FRAME)) };
        // the specification requires it: a length that is not rounded up would misplace the next block
        let total = len as usize;
        if total < FRAME || total % 4 != 0 {
            return corrupt("a block length that is no multiple of 4, or below 12");
        }
        let wanted =
            matches!(kind, SECTION | INTERFACE | PACKET_OBSOLETE | PACKET_SIMPLE | PACKET_ENHANCED);
        if !wanted {
            return Ok(Step::Skip(u64::from(len)));
        }
        if len > MAX_RECORD + (1 << 16) {
            return corrupt("a block over 16 MiB");
        }
        if bytes.len() < total {
            return Ok(Step::Need(total));
        }
        let body = bytes.get(8..total - 4).unwrap_or_default();
        let parsed = match kind {
            INTERFACE => self.interface(body),
            PACKET_ENHANCED | PACKET_OBSOLETE => self.packet(kind, body, at + 8, file, *packets),
            PACKET_SIMPLE => self.simple(body, at + 8, file, *packets),
            _ => Ok(None),
        };
        match parsed {
            Ok(Some(record)) => {
                *packets += 1;
                let record = record.unwrapped(bytes, at);
                self.last_ns = record.time_ns;
                records.push(Record { number: *packets, ..record });
            }
            Ok(None) => {}
            Err(what) => return corrupt(what),
        }
        Ok(Step::Taken(total))
    }

    fn interface(&mut self, body: &[u8]) -> Result<Option<Record>, &'static str> {
        let (Some(link), Some(snap)) = (self.u16(body, 0), self.u32(body, 4)) else {
            return Err("an interface block without its link type");
        };
        let mut interface = Interface {
            link: Link::from_number(link.into()),
            snap,
            resolution: 6,
            offset: 0,
            fcs: 0,
        };
        for (code, from, len) in self.options(body, 8) {
            let Some(value) = body.get(from..from + len) else { break };
            match (code, value) {
                (OPT_TSRESOL, [resolution]) => interface.resolution = *resolution,
                // in bits; some write bytes
                (OPT_FCSLEN, &[length]) => {
                    let bytes = u32::from(if length < 8 { length } else { length / 8 });
                    interface.fcs = bytes.min(MAX_FCS);
                }
                (OPT_TSOFFSET, &[a, b, c, d, e, f, g, h]) => {
                    let raw = [a, b, c, d, e, f, g, h];
                    interface.offset =
                        if self.big { i64::from_be_bytes(raw) } else { i64::from_le_bytes(raw) };
                }
                _ => {}
            }
        }
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err("more than 65536 interfaces");
        }
        self.interfaces.push(interface);
        Ok(None)
    }

    /// Code, offset in `body` and length of each option.
    fn options<'a>(
        &'a self,
        body: &'a [u8],
        mut at: usize,
    ) -> impl Iterator<Item = (u16, usize, usize)> + 'a {
        std::iter::from_fn(move || {
            let code = self.u16(body, at)?;
            let len = usize::from(self.u16(body, at + 2)?);
            let from = at + 4;
            at = from + len.next_multiple_of(4);
            (code != 0).then_some((code, from, len))
        })
    }

    #[inline]
    fn packet(
        &self,
        kind: u32,
        body: &[u8],
        at: usize,
        file: u16,
        packets: u64,
    ) -> Result<Option<Record>, &'static str> {
        let id = if kind == PACKET_OBSOLETE {
            self.u16(body, 0).map(u32::from)
        } else {
            self.u32(body, 0)
        };
        let (Some(id), Some(high), Some(low), Some(len), Some(wire_len)) =
            (id, self.u32(body, 4), self.u32(body, 8), self.u32(body, 12), self.u32(body, 16))
        else {
            return Err("a packet block shorter than its header");
        };
        let Some(interface) = self.interfaces.get(id as usize) else {
            return Err("a packet of an interface that was not described");
        };
        let end = ENHANCED_FIXED + len as usize;
        if body.len() < end {
            return Err("a packet longer than its block");
        }
        let mut comment = NO_COMMENT;
        if body.len() > end + 4 {
            comment = self
                .options(body, end.next_multiple_of(4))
                .find(|&(code, from, len)| code == OPT_COMMENT && from + len <= body.len())
                .map_or(NO_COMMENT, |(_, from, len)| ((at + from) as u32, len as u16));
        }
        Ok(Some(
            Record {
                offset: (at + ENHANCED_FIXED) as u32,
                len,
                wire_len: wire_len.max(len),
                comment,
                file,
                link: interface.link,
                interface: if self.interfaces.len() > 1 { id + 1 } else { 0 },
                time_ns: interface.time_ns(u64::from(high) << 32 | u64::from(low)),
                number: packets,
                ..Record::PLAIN
            }
            .without_fcs(interface.fcs),
        ))
    }

    /// A simple packet has no time, so it gets that of the previous packet.
    fn simple(
        &self,
        body: &[u8],
        at: usize,
        file: u16,
        packets: u64,
    ) -> Result<Option<Record>, &'static str> {
        let Some(wire_len) = self.u32(body, 0) else {
            return Err("a packet block shorter than its header");
        };
        let Some(interface) = self.interfaces.first() else {
            return Err("a packet of an interface that was not described");
        };
        let snap = if interface.snap == 0 { u32::MAX } else { interface.snap };
        let len = wire_len.min(snap).min((body.len() - 4) as u32);
        Ok(Some(
            Record {
                offset: (at + 4) as u32,
                len,
                wire_len,
                file,
                link: interface.link,
                time_ns: self.last_ns,
                number: packets,
                ..Record::PLAIN
            }
            .without_fcs(interface.fcs),
        ))
    }
}
