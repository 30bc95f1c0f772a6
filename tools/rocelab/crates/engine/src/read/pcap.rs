// SPDX-License-Identifier: GPL-2.0-or-later
//! The classic format (draft-ietf-opsawg-pcap): µs or ns, either byte order; also as Kuznetzov's tcpdump
//! wrote it, whose records have an interface, a protocol and a packet type.

use roce::Link;

use super::read_error::ReadError;
use super::record_block::Record;

const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;
/// "Modified" pcap: tcpdump of old Red Hat systems.
const KUZNETZOV: u32 = 0xa1b2_cd34;
/// No link layer has a longer frame check sequence.
pub(super) const MAX_FCS: u32 = 4;
/// The bit of the link type that says that its upper four bits are the length of an FCS.
const HAS_FCS: u32 = 1 << 26;
const RECORD_HEADER: usize = 16;
const KUZNETZOV_EXTRA: usize = 8;
/// libpcap's own limit (MAXIMUM_SNAPLEN) is 256 KiB; USB captures may have more.
pub(super) const MAX_RECORD: u32 = 16 << 20;

pub(super) struct Pcap {
    big: bool,
    scale: i64,
    link: Link,
    /// Bytes of a record's header.
    head: usize,
    /// Bytes of the frame check sequence behind each frame.
    fcs: u32,
}

impl Pcap {
    pub(super) const HEADER: usize = 24;

    pub(super) fn is_magic(magic: [u8; 4]) -> bool {
        [u32::from_le_bytes(magic), u32::from_be_bytes(magic)]
            .iter()
            .any(|number| [MICRO, NANO, KUZNETZOV].contains(number))
    }

    pub(super) fn new(header: &[u8; Self::HEADER]) -> Option<Self> {
        let magic = *header.first_chunk::<4>()?;
        let big = matches!(u32::from_be_bytes(magic), MICRO | NANO | KUZNETZOV);
        let mut pcap = Self { big, scale: 1000, link: Link::Ethernet, head: RECORD_HEADER, fcs: 0 };
        match pcap.u32(header, 0)? {
            NANO => pcap.scale = 1,
            KUZNETZOV => pcap.head += KUZNETZOV_EXTRA,
            _ => {}
        }
        let link = pcap.u32(header, 20)?;
        pcap.link = Link::from_number(link & 0x03ff_ffff);
        if link & HAS_FCS != 0 {
            // in units of two bytes; some write bytes
            pcap.fcs = ((link >> 28) * 2).min(MAX_FCS);
        }
        Some(pcap)
    }

    #[inline]
    fn u32(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let raw = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) })
    }

    /// Seconds, their fraction, bytes captured, bytes on the wire.
    #[inline]
    fn header<const BIG: bool>(bytes: &[u8]) -> Option<[u32; 4]> {
        let raw = bytes.first_chunk::<RECORD_HEADER>()?;
        Some([0, 4, 8, 12].map(|at| {
            let word = [raw[at], raw[at + 1], raw[at + 2], raw[at + 3]];
            if BIG { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
        }))
    }

    /// Adds the whole records from `at` on; returns the offset of the first incomplete record, and
    /// how many bytes it needs.
    pub(super) fn run(
        &self,
        data: &[u8],
        at: usize,
        file: u16,
        packets: &mut u64,
        records: &mut Vec<Record>,
    ) -> Result<(usize, usize), ReadError> {
        if self.big {
            self.run_in::<true>(data, at, file, packets, records)
        } else {
            self.run_in::<false>(data, at, file, packets, records)
        }
    }

    fn run_in<const BIG: bool>(
        &self,
        data: &[u8],
        mut at: usize,
        file: u16,
        packets: &mut u64,
        records: &mut Vec<Record>,
    ) -> Result<(usize, usize), ReadError> {
        let (mut number, scale, link, head) = (*packets, self.scale, self.link, self.head);
        let mut rest = data.get(at..).unwrap_or_default();
        let mut need = head;
        let mut whole = || {
            let [seconds, fraction, len, wire_len] = Self::header::<BIG>(rest)?;
            need = head.saturating_add(len as usize);
            rest = rest.get(need..)?;
            let offset = (at + head) as u32;
            at += need;
            need = head;
            number += 1;
            Some(Record {
                offset,
                len,
                // some writers leave 0 here
                wire_len: wire_len.max(len),
                file,
                link,
                time_ns: i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * scale,
                number,
                ..Record::PLAIN
            })
        };
        let new = std::iter::from_fn(&mut whole);
        if self.fcs > 0 {
            records.extend(new.map(|record| record.without_fcs(self.fcs).unwrapped(data, 0)));
        } else if link.wraps() {
            records.extend(new.map(|record| record.unwrapped(data, 0)));
        } else {
            records.extend(new);
        }
        *packets = number;
        if need > head + MAX_RECORD as usize {
            return Err(ReadError::Corrupt { packet: *packets, what: "a record over 16 MiB" });
        }
        Ok((at, need))
    }
}
