// SPDX-License-Identifier: GPL-2.0-or-later
//! Recognises frames by cached headers: most frames differ from an earlier one in little but the PSN.

use roce_crc::Crc32;

use crate::bytes;
use crate::decode::{ETH_IPV4, ETH_IPV6, ETH_ROCE_V1, LinkLayer, link_layer};
use crate::flow::psn;
use crate::header::{BTH_LEN, Header, ICRC_LEN};
use crate::header_shape::{HASH_BITS, LAYOUT_V1, LAYOUT_V2_IPV4, LAYOUT_V2_IPV6, Layout, Shape};
use crate::icrc::{self, HeaderCrc};
use crate::link::Link;
use crate::packet::{Icrc, Net, Packet};

/// Evaluates an expression with the layout of a net, compiled once for each header length. Native
/// InfiniBand is not cached: nobody captures it at a rate that needs it.
macro_rules! by_layout {
    ($net:expr, $layout:ident => $what:expr, else $other:expr) => {
        match $net {
            Net::V2Ipv4 => {
                let $layout = &LAYOUT_V2_IPV4;
                $what
            }
            Net::V2Ipv6 => {
                let $layout = &LAYOUT_V2_IPV6;
                $what
            }
            Net::V1 => {
                let $layout = &LAYOUT_V1;
                $what
            }
            Net::Infiniband => $other,
        }
    };
}

/// The fields that vary between packets with the same cached headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Varying {
    /// The PSN.
    pub psn: u32,
    /// BTH byte 8: AckReq and seven reserved bits.
    pub apsn: u8,
    /// The ICRC in the frame; 0 if it was not captured.
    pub icrc: u32,
}

impl Varying {
    /// The varying fields of `frame`, whose other headers are those of `packet`.
    #[must_use]
    #[inline]
    pub fn of(packet: &Packet, frame: &[u8]) -> Self {
        let [apsn, a, b, c] =
            bytes::array(frame, usize::from(packet.bth_off) + BTH_LEN - 4).unwrap_or_default();
        let icrc = icrc::found(packet, frame).unwrap_or(0);
        Self { psn: u32::from_be_bytes([0, a, b, c]), apsn, icrc }
    }

    /// Whether the PSN is the next after `psn`.
    #[must_use]
    #[inline]
    pub const fn follows(self, psn: u32) -> bool {
        self.psn == psn::add(psn, 1)
    }
}

/// A frame whose headers are in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The caller's number of the packet that was decoded.
    pub index: u32,
    /// What differs from that packet.
    pub varying: Varying,
    /// The verdict on this frame's ICRC.
    pub icrc: Icrc,
}

/// The cached headers of a decoded frame.
#[derive(Clone, Copy, Debug)]
struct Entry {
    shape: Shape,
    header_crc: HeaderCrc,
    /// The DMA length of the RETH and its offset; without a RETH, the first four bytes of the frame.
    dma_len: [u8; 4],
    dma_len_at: Option<u32>,
    /// Bytes between BTH and ICRC, if all of them were captured.
    covered: Option<u32>,
    index: u32,
}

impl Entry {
    /// Compares a frame with this entry; gives its varying fields and the verdict on its ICRC.
    #[inline(always)]
    fn compare<const LEN: usize, const WORDS: usize>(
        &self,
        layout: &Layout<LEN, WORDS>,
        link: Link,
        frame: &[u8],
        wire_len: u32,
        check: Option<Crc32>,
    ) -> Option<(Varying, Icrc)> {
        let (headers, rest) = layout.split(&self.shape, link, frame, wire_len)?;
        if let Some(at) = self.dma_len_at {
            let at = at as usize;
            if frame.get(at..at + 4)? != self.dma_len {
                return None;
            }
        }
        let [apsn, a, b, c] = *headers.last_chunk()?;
        let varying = Varying { psn: u32::from_be_bytes([0, a, b, c]), apsn, icrc: 0 };
        let Some(covered) = self.covered else { return Some((varying, Icrc::Unchecked)) };
        let (covered, rest) = rest.split_at_checked(covered as usize)?;
        let icrc = u32::from_le_bytes(*rest.first_chunk::<ICRC_LEN>()?);
        let verdict = match check {
            None => Icrc::Unchecked,
            Some(crc) => {
                let right = self.header_crc.expected(crc, layout.net, headers, covered) == icrc;
                if right { Icrc::Ok } else { Icrc::Bad }
            }
        };
        Some((Varying { icrc, ..varying }, verdict))
    }
}

const SLOTS: usize = 1 << HASH_BITS;

/// A cache of decoded headers of the usual length (no IPv4 options, no IPv6 extension headers, no
/// tunnels).
///
/// A hit may differ from the decoded frame only in [`Varying`], the IPv4 identification, checksums,
/// the flow label, the link-layer header except its types and VLANs, and what follows the BTH except the DMA
/// length of a RETH. [`crate::decode_into`] gives the same result for both in everything else.
#[derive(Debug)]
pub struct HeaderCache {
    /// Each entry is in the slot that its hash selects, or in the neighbouring one.
    slots: Box<[Option<Entry>; SLOTS]>,
    /// Slots in use.
    used: Vec<usize>,
    /// The headers that were last offered for each slot, as a number: only those that come again are cached,
    /// for of thousands of connections few do before their slot is taken.
    offered: Box<[u32; SLOTS]>,
    /// The slot of the last hit or insertion.
    last: usize,
    crc: Crc32,
}

impl Default for HeaderCache {
    fn default() -> Self {
        Self {
            slots: Box::new([None; SLOTS]),
            used: Vec::with_capacity(SLOTS),
            offered: Box::new([0; SLOTS]),
            last: 0,
            crc: Crc32::new(),
        }
    }
}

impl HeaderCache {
    /// Looks up a frame by its headers. Verifies the ICRC if `check` is set.
    #[must_use]
    #[inline]
    pub fn lookup(&mut self, link: Link, frame: &[u8], wire_len: u32, check: bool) -> Option<Hit> {
        let LinkLayer { ethertype, at, .. } = link_layer(link, frame)?;
        let headers = frame.get(at..)?;
        let net = match ethertype {
            ETH_IPV4 => Net::V2Ipv4,
            ETH_IPV6 => Net::V2Ipv6,
            ETH_ROCE_V1 => Net::V1,
            _ => return None,
        };
        by_layout!(net, layout => {
            let check = check.then_some(self.crc);
            let (slot, _) = layout.hash(headers.first_chunk()?, wire_len);
            for slot in [slot, slot ^ 1] {
                let entry = self.slots[slot % SLOTS].as_ref()?;
                if let Some((varying, icrc)) = entry.compare(layout, link, frame, wire_len, check) {
                    self.last = slot;
                    return Some(Hit { index: entry.index, varying, icrc });
                }
            }
            None
        }, else None)
    }

    /// Counts the `frames` (link type, bytes, length on the wire) that continue the run of `last`, the
    /// last hit or insertion: the same headers, consecutive PSNs, no wrong ICRC.
    #[must_use]
    #[inline]
    pub fn run<'a>(
        &self,
        last: Hit,
        frames: impl Iterator<Item = (Link, &'a [u8], u32)>,
        check: bool,
    ) -> usize {
        let entry = self.slots[self.last % SLOTS].as_ref();
        let Some(entry) = entry.filter(|entry| entry.index == last.index) else { return 0 };
        let check = check.then_some(self.crc);
        let (mut count, mut psn) = (0, last.varying.psn);
        by_layout!(entry.shape.net, layout => {
            for (link, frame, wire_len) in frames {
                match entry.compare(layout, link, frame, wire_len, check) {
                    Some((varying, icrc)) if icrc != Icrc::Bad && varying.follows(psn) => {
                        psn = varying.psn;
                    }
                    _ => break,
                }
                count += 1;
            }
        }, else ());
        count
    }

    /// Caches the headers of `frame`, decoded as `packet`, under the caller's number `index`, if they were the
    /// last that were offered for their slot.
    #[inline]
    pub fn insert(&mut self, link: Link, frame: &[u8], packet: &Packet, index: u32) {
        by_layout!(
            packet.net,
            layout => self.insert_as(layout, link, frame, packet, index),
            else None
        );
    }

    fn insert_as<const LEN: usize, const WORDS: usize>(
        &mut self,
        layout: &Layout<LEN, WORDS>,
        link: Link,
        frame: &[u8],
        packet: &Packet,
        index: u32,
    ) -> Option<()> {
        let at = usize::from(packet.l3_off);
        let headers = frame.get(at..)?.first_chunk::<LEN>()?;
        let bth_end = usize::from(packet.bth_off) + BTH_LEN;
        if bth_end != at + LEN || packet.tunnel_len != 0 {
            return None;
        }
        let (slot, number) = layout.hash(headers, packet.wire_len);
        if std::mem::replace(&mut self.offered[slot % SLOTS], number) != number {
            return None;
        }
        let reth = packet.op().and_then(|op| op.offset(Header::Reth));
        let dma_len_at = reth.map(|offset| usize::from(packet.bth_off) + offset + 12);
        let entry = Entry {
            shape: layout.shape(link, at, packet.segment.vlans, frame, packet.wire_len)?,
            header_crc: HeaderCrc::new(layout.net, headers),
            dma_len: *frame.get(dma_len_at.unwrap_or(0)..)?.first_chunk()?,
            dma_len_at: dma_len_at.map(|at| at as u32),
            covered: packet.complete.then(|| (packet.icrc_off() - bth_end) as u32),
            index,
        };
        let free = |slot: &usize| self.slots[slot % SLOTS].is_none();
        self.last = [slot, slot ^ 1].into_iter().find(free).unwrap_or(slot) % SLOTS;
        if self.slots[self.last].replace(entry).is_none() {
            self.used.push(self.last);
        }
        Some(())
    }

    /// Empties the cache.
    pub fn clear(&mut self) {
        for slot in self.used.drain(..) {
            self.slots[slot] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Frame, Ports, decode};
    use crate::header::{GRH_LEN, UDP_LEN};

    const WRITE_ONLY: u8 = 0x0a;
    const SEND_ONLY: u8 = 0x04;
    const ACKNOWLEDGE: u8 = 0x11;
    const OUTER: [(Link, usize, Net); 12] = [
        (Link::Ethernet, 14, Net::V2Ipv4),
        (Link::Ethernet, 18, Net::V2Ipv4),
        (Link::Ethernet, 22, Net::V2Ipv6),
        (Link::Ethernet, 14, Net::V2Ipv6),
        (Link::Ethernet, 14, Net::V1),
        (Link::Ethernet, 18, Net::V1),
        (Link::LinuxSll, 16, Net::V2Ipv4),
        (Link::LinuxSll2, 20, Net::V2Ipv6),
        (Link::RawIp, 0, Net::V2Ipv4),
        (Link::Null, 4, Net::V2Ipv4),
        (Link::Null, 4, Net::V2Ipv6),
        (Link::Ipnet, 24, Net::V2Ipv4),
    ];

    /// Pseudo-random bytes from a seed (a linear congruence).
    struct Noise(u64);

    impl Noise {
        fn byte(&mut self) -> u8 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 56) as u8
        }
    }

    /// A frame and the offset of its BTH.
    #[derive(Clone)]
    struct Sample {
        link: Link,
        bytes: Vec<u8>,
        l3: usize,
        bth: usize,
    }

    impl Sample {
        /// A frame with `behind` bytes between BTH and ICRC; every free byte is noise.
        fn new(
            (link, l3, net): (Link, usize, Net),
            opcode: u8,
            behind: usize,
            noise: &mut Noise,
        ) -> Self {
            let bth = l3
                + match net {
                    Net::V2Ipv4 => 20 + UDP_LEN,
                    Net::V2Ipv6 => 40 + UDP_LEN,
                    Net::V1 => GRH_LEN,
                    Net::Infiniband => unreachable!(),
                };
            let end = bth + BTH_LEN + behind + ICRC_LEN;
            let mut bytes: Vec<u8> = (0..end).map(|_| noise.byte()).collect();
            let mut put = |at: usize, with: &[u8]| bytes[at..at + with.len()].copy_from_slice(with);
            let length = |from: usize| ((end - from) as u16).to_be_bytes();
            let ethertype: [u8; 2] = match net {
                Net::V2Ipv4 => [0x08, 0x00],
                Net::V2Ipv6 => [0x86, 0xdd],
                Net::V1 => [0x89, 0x15],
                Net::Infiniband => unreachable!(),
            };
            match link {
                Link::Ethernet => {
                    for tag in (12..l3 - 2).step_by(4) {
                        put(tag, &[0x81, 0x00, 0x21, 0x07]);
                    }
                    put(l3 - 2, &ethertype);
                }
                Link::LinuxSll => put(14, &ethertype),
                Link::LinuxSll2 => put(0, &ethertype),
                _ => {}
            }
            if net == Net::V2Ipv4 {
                put(l3, &[0x45, 0x02]);
                put(l3 + 2, &length(l3));
                put(l3 + 6, &[0x40, 0x00, 64, 17]);
                put(l3 + 12, &[10, 0, 0, 1, 10, 0, 0, 2]);
            } else {
                put(l3, &[0x60, 0x20]);
                put(l3 + 4, &length(l3 + 40));
                put(l3 + 6, &[if net == Net::V1 { 0x1b } else { 17 }, 64]);
                put(l3 + 8, &[0xfd; 32]);
            }
            if net != Net::V1 {
                put(bth - 8, &[0xc0, 0x12, 0x12, 0xb7]);
                put(bth - 4, &length(bth - 8));
            }
            put(bth, &[opcode, 0, 0xff, 0xff, 0, 0, 0, 18]);
            if opcode == WRITE_ONLY {
                put(bth + 24, &(behind as u32 - 16).to_be_bytes());
            }
            bytes[bth + 8] &= 0x80;
            let mut sample = Self { link, bytes, l3, bth };
            sample.seal();
            sample
        }

        fn decoded(&self) -> Packet {
            let len = self.bytes.len() as u32;
            match decode(self.link, &self.bytes, len, &Ports::default()) {
                Frame::Roce(packet) => packet,
                other => panic!("{other:?}"),
            }
        }

        fn seal(&mut self) {
            if let Some(icrc) = icrc::expected(&self.decoded(), &self.bytes) {
                let at = self.bytes.len() - ICRC_LEN;
                self.bytes[at..].copy_from_slice(&icrc.to_le_bytes());
            }
        }

        fn with_psn(mut self, psn: u32) -> Self {
            self.bytes[self.bth + 9..self.bth + 12].copy_from_slice(&psn.to_be_bytes()[1..]);
            self.seal();
            self
        }

        fn cached(&self) -> HeaderCache {
            let mut cache = HeaderCache::default();
            for _ in 0..2 {
                cache.insert(self.link, &self.bytes, &self.decoded(), 7);
            }
            cache
        }

        fn looked_up(&self, cache: &mut HeaderCache, check: bool) -> Option<Hit> {
            cache.lookup(self.link, &self.bytes, self.bytes.len() as u32, check)
        }
    }

    #[test]
    fn a_hit_equals_decoding() {
        let mut noise = Noise(1);
        for outer in OUTER {
            for (opcode, least) in [(WRITE_ONLY, 16), (SEND_ONLY, 0), (ACKNOWLEDGE, 4)] {
                for behind in (least..300).step_by(4).chain([2064, 4112]) {
                    let mut cache = Sample::new(outer, opcode, behind, &mut noise).cached();
                    let mut other = Sample::new(outer, opcode, behind, &mut noise);
                    if noise.byte() % 4 == 0 {
                        let from = other.bth + BTH_LEN;
                        let at = from + usize::from(noise.byte()) % (other.bytes.len() - from);
                        // leave the DMA length as it is
                        let announced = other.bth + 24..other.bth + 28;
                        other.bytes[at] ^= if announced.contains(&at) { 0 } else { 1 };
                    }
                    let packet = other.decoded();
                    let varying = Varying::of(&packet, &other.bytes);
                    assert_eq!((varying.psn, varying.apsn), (packet.psn, packet.apsn));
                    let icrc = icrc::check(&packet, &other.bytes);
                    let hit = Hit { index: 7, varying, icrc };
                    assert_eq!(other.looked_up(&mut cache, true), Some(hit));
                    let unchecked = Hit { icrc: Icrc::Unchecked, ..hit };
                    assert_eq!(other.looked_up(&mut cache, false), Some(unchecked));
                }
            }
        }
    }

    #[test]
    fn every_header_bit_varies_freely_or_misses() {
        let mut noise = Noise(2);
        for outer in OUTER {
            let (link, l3, net) = outer;
            let first = Sample::new(outer, WRITE_ONLY, 80, &mut noise);
            let mut cache = first.cached();
            for bit in 0..8 * (first.bth + 28) {
                let mut other = first.clone();
                other.bytes[bit / 8] ^= 0x80 >> (bit % 8);
                let known = other.looked_up(&mut cache, true).is_some();
                let byte = bit / 8;
                let free = match byte {
                    _ if byte < l3 => match link {
                        // addresses, and what tags have but the VLAN
                        Link::Ethernet => {
                            byte < 12 || byte % 4 == 2 && byte < l3 - 2 && bit % 8 < 4
                        }
                        Link::LinuxSll => byte < 14,
                        Link::Null | Link::Ipnet => true,
                        _ => byte >= 2,
                    },
                    _ if byte < first.bth => match (byte - l3, net) {
                        (4 | 5 | 10 | 11 | 26 | 27, Net::V2Ipv4) | (46 | 47, Net::V2Ipv6) => true,
                        (1, Net::V2Ipv6 | Net::V1) => bit % 8 >= 4,
                        (2 | 3, Net::V2Ipv6 | Net::V1) => true,
                        _ => false,
                    },
                    _ => match byte - first.bth {
                        8 => bit % 8 == 0,
                        behind => (9..24).contains(&behind),
                    },
                };
                // another tag type may also be a VLAN's
                let tag = link == Link::Ethernet && (12..l3 - 2).contains(&byte) && byte % 4 < 2;
                assert!(tag || known == free, "{outer:?} bit {bit}");
            }
        }
    }

    #[test]
    fn a_run_ends_at_other_headers_and_wrong_icrcs() {
        let mut noise = Noise(4);
        for outer in OUTER {
            let samples: Vec<Sample> = [0xff_fffe, 0xff_ffff, 0, 1, 3]
                .map(|psn| Sample::new(outer, WRITE_ONLY, 80, &mut noise).with_psn(psn))
                .into();
            let run = |samples: &[Sample], check: bool| {
                let mut cache = samples[0].cached();
                let first = samples[0].looked_up(&mut cache, check).unwrap();
                let frames = samples[1..].iter();
                let len = |sample: &Sample| sample.bytes.len() as u32;
                cache.run(first, frames.map(|one| (one.link, &one.bytes[..], len(one))), check)
            };
            assert_eq!(run(&samples, true), 3);
            let mut wrong = samples.clone();
            let payload = wrong[2].bth + BTH_LEN + 16;
            wrong[2].bytes[payload] ^= 1;
            assert_eq!((run(&wrong, true), run(&wrong, false)), (1, 3));
            let mut other = samples;
            let at = other[3].bth + 7;
            other[3].bytes[at] ^= 1;
            assert_eq!(run(&other, false), 2);
        }
    }

    #[test]
    fn cut_frames_miss() {
        let mut noise = Noise(3);
        for outer in OUTER {
            let first = Sample::new(outer, SEND_ONLY, 64, &mut noise);
            let (link, bytes, len) = (first.link, &first.bytes, first.bytes.len() as u32);
            let mut cache = first.cached();
            assert!(cache.lookup(link, bytes, len, true).is_some());
            let other = if link == Link::RawIp { Link::Ethernet } else { Link::RawIp };
            assert!(cache.lookup(other, bytes, len, true).is_none());
            assert!(cache.lookup(link, bytes, len + 1, true).is_none());
            for cut in 0..bytes.len() {
                assert!(cache.lookup(link, &bytes[..cut], len, true).is_none());
            }
            let snapped = &bytes[..first.bth + 40];
            let mut cache = HeaderCache::default();
            let Frame::Roce(packet) = decode(link, snapped, len, &Ports::default()) else {
                panic!()
            };
            for _ in 0..2 {
                cache.insert(link, snapped, &packet, 0);
            }
            let known = cache.lookup(link, snapped, len, true).unwrap();
            assert_eq!(known.icrc, Icrc::Unchecked);
            assert_eq!(known.varying, Varying { psn: packet.psn, apsn: packet.apsn, icrc: 0 });
        }
    }

    #[test]
    fn ipv4_options_are_not_cached() {
        let mut noise = Noise(5);
        let mut sample = Sample::new(OUTER[0], SEND_ONLY, 64, &mut noise);
        let options = sample.l3 + 20;
        sample.bytes.splice(options..options, [1; 4]);
        sample.bytes[sample.l3] = 0x46;
        assert_eq!(usize::from(sample.decoded().bth_off), sample.bth + 4);
        assert!(sample.looked_up(&mut sample.cached(), true).is_none());
    }
}
