// SPDX-License-Identifier: GPL-2.0-or-later
//! Frames known again by their headers: most differ from one before in little but their PSN.

use roce_crc::Crc32;

use crate::bytes;
use crate::decode::{ETH_IPV4, ETH_IPV6, ETH_ROCE_V1, Link, link_layer};
use crate::flow::psn;
use crate::icrc::{self, Common};
use crate::opcode::Header;
use crate::packet::{BTH_LEN, ICRC_LEN, Icrc, Net, Packet};
use crate::shape::{LAYOUT_V1, LAYOUT_V2_IPV4, LAYOUT_V2_IPV6, Layout, Shape};

/// The same for each layout, compiled for its length.
macro_rules! by_layout {
    ($net:expr, $layout:ident => $what:expr) => {
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
        }
    };
}

/// What is a packet's own among those with the same headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Its PSN.
    pub psn: u32,
    /// BTH byte 8: AckReq, seven reserved bits.
    pub apsn: u8,
    /// The ICRC that it carries; 0 if that was not captured.
    pub icrc: u32,
}

impl Own {
    /// What a frame has that differs from `packet` in nothing else.
    #[must_use]
    #[inline]
    pub fn of(packet: &Packet, frame: &[u8]) -> Self {
        let [apsn, a, b, c] =
            bytes::array(frame, usize::from(packet.bth_off) + BTH_LEN - 4).unwrap_or_default();
        let icrc = icrc::found(packet, frame).filter(|_| packet.complete).unwrap_or(0);
        Self { psn: u32::from_be_bytes([0, a, b, c]), apsn, icrc }
    }

    /// Its PSN is the one after `psn`.
    #[must_use]
    #[inline]
    pub const fn follows(self, psn: u32) -> bool {
        self.psn == psn::add(psn, 1)
    }
}

/// A frame that is like one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// The caller's number of the packet that was decoded.
    pub index: u32,
    /// What this one has of its own.
    pub own: Own,
    /// Its ICRC.
    pub icrc: Icrc,
}

/// A frame that was decoded: what the next one like it need not be asked.
#[derive(Clone, Copy, Debug)]
struct Known {
    shape: Shape,
    common: Common,
    /// A RETH's DMA length and where it is; without a RETH, the frame's first four bytes.
    announced: [u8; 4],
    announced_at: Option<u32>,
    /// Bytes between BTH and ICRC, if that was captured.
    covered: Option<u32>,
    index: u32,
}

impl Known {
    /// What a frame has of its own, if it is like this one.
    #[inline(always)]
    fn look<const LEN: usize, const WORDS: usize>(
        &self,
        layout: &Layout<LEN, WORDS>,
        link: Link,
        frame: &[u8],
        wire_len: u32,
        check: Option<Crc32>,
    ) -> Option<(Own, Icrc)> {
        let (headers, behind) = layout.split(&self.shape, link, frame, wire_len)?;
        if let Some(at) = self.announced_at {
            let at = at as usize;
            if frame.get(at..at + 4)? != self.announced {
                return None;
            }
        }
        let [apsn, a, b, c] = *headers.last_chunk()?;
        let own = Own { psn: u32::from_be_bytes([0, a, b, c]), apsn, icrc: 0 };
        let Some(covered) = self.covered else { return Some((own, Icrc::Unchecked)) };
        let (covered, rest) = behind.split_at_checked(covered as usize)?;
        let icrc = u32::from_le_bytes(*rest.first_chunk::<ICRC_LEN>()?);
        let verdict = match check {
            None => Icrc::Unchecked,
            Some(crc) => {
                let right = self.common.expected(crc, layout.net, headers, covered) == icrc;
                if right { Icrc::Ok } else { Icrc::Bad }
            }
        };
        Some((Own { icrc, ..own }, verdict))
    }
}

const PLACES: usize = 512;

/// Knows frames with headers of usual length (no IPv4 options, no IPv6 extension headers) again that
/// differ from one before only in [`Own`], IPv4 identification, checksums, flow label, what is before
/// the network header but for its type, and what is behind the BTH but for a RETH's DMA length: what
/// else [`crate::decode_into`] would say is the same.
#[derive(Debug)]
pub struct Memory {
    /// Each at the place that its shape's hash names, or at the one beside it.
    known: Box<[Option<Known>; PLACES]>,
    /// Places taken.
    taken: Vec<usize>,
    /// Where the last one is.
    last: usize,
    crc: Crc32,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            known: Box::new([None; PLACES]),
            taken: Vec::with_capacity(PLACES),
            last: 0,
            crc: Crc32::new(),
        }
    }
}

impl Memory {
    /// What a frame has of its own, if one before with these headers is still known. Its ICRC is
    /// verified if `check` says so.
    #[must_use]
    #[inline]
    pub fn recall(
        &mut self,
        link: Link,
        frame: &[u8],
        wire_len: u32,
        check: bool,
    ) -> Option<Recalled> {
        let (ethertype, at, _) = link_layer(link, frame)?;
        let headers = frame.get(at..)?;
        let net = match ethertype {
            ETH_IPV4 => Net::V2Ipv4,
            ETH_IPV6 => Net::V2Ipv6,
            ETH_ROCE_V1 => Net::V1,
            _ => return None,
        };
        by_layout!(net, layout => {
            let check = check.then_some(self.crc);
            let place = layout.hash(headers.first_chunk()?, wire_len);
            for place in [place, place ^ 1] {
                let known = self.known[place % PLACES].as_ref()?;
                if let Some((own, icrc)) = known.look(layout, link, frame, wire_len, check) {
                    self.last = place;
                    return Some(Recalled { index: known.index, own, icrc });
                }
            }
            None
        })
    }

    /// How many of `frames` (of a link type, its bytes, its length on the wire) go on like the one
    /// that was recalled or kept last: alike, each with the PSN after the one before, none with a
    /// wrong ICRC.
    #[must_use]
    #[inline]
    pub fn run<'a>(
        &self,
        last: Recalled,
        frames: impl Iterator<Item = (Link, &'a [u8], u32)>,
        check: bool,
    ) -> usize {
        let known = self.known[self.last % PLACES].as_ref();
        let Some(known) = known.filter(|known| known.index == last.index) else { return 0 };
        let check = check.then_some(self.crc);
        let (mut count, mut psn) = (0, last.own.psn);
        by_layout!(known.shape.net, layout => {
            for (link, frame, wire_len) in frames {
                match known.look(layout, link, frame, wire_len, check) {
                    Some((own, icrc)) if icrc != Icrc::Bad && own.follows(psn) => psn = own.psn,
                    _ => break,
                }
                count += 1;
            }
        });
        count
    }

    /// Remember that `frame` was decoded as `packet`, which is the caller's number `index`.
    #[inline]
    pub fn keep(&mut self, link: Link, frame: &[u8], packet: &Packet, index: u32) {
        by_layout!(packet.net, layout => self.keep_as(layout, link, frame, packet, index));
    }

    fn keep_as<const LEN: usize, const WORDS: usize>(
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
        if bth_end != at + LEN {
            return None;
        }
        let reth = packet.op().and_then(|op| op.offset(Header::Reth));
        let announced_at = reth.map(|offset| usize::from(packet.bth_off) + offset + 12);
        let known = Known {
            shape: layout.shape(link, at, frame, packet.wire_len)?,
            common: Common::new(layout.net, headers),
            announced: *frame.get(announced_at.unwrap_or(0)..)?.first_chunk()?,
            announced_at: announced_at.map(|at| at as u32),
            covered: packet.complete.then(|| (packet.icrc_off() - bth_end) as u32),
            index,
        };
        let place = layout.hash(headers, packet.wire_len);
        let free = |place: &usize| self.known[place % PLACES].is_none();
        self.last = [place, place ^ 1].into_iter().find(free).unwrap_or(place) % PLACES;
        if self.known[self.last].replace(known).is_none() {
            self.taken.push(self.last);
        }
        Some(())
    }

    /// Begin anew.
    pub fn forget(&mut self) {
        for place in self.taken.drain(..) {
            self.known[place] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Frame, Ports, decode};
    use crate::packet::{GRH_LEN, UDP_LEN};

    const WRITE_ONLY: u8 = 0x0a;
    const SEND_ONLY: u8 = 0x04;
    const ACKNOWLEDGE: u8 = 0x11;
    const OUTER: [(Link, usize, Net); 9] = [
        (Link::Ethernet, 14, Net::V2Ipv4),
        (Link::Ethernet, 18, Net::V2Ipv4),
        (Link::Ethernet, 22, Net::V2Ipv6),
        (Link::Ethernet, 14, Net::V2Ipv6),
        (Link::Ethernet, 14, Net::V1),
        (Link::Ethernet, 18, Net::V1),
        (Link::LinuxSll, 16, Net::V2Ipv4),
        (Link::LinuxSll2, 20, Net::V2Ipv6),
        (Link::RawIp, 0, Net::V2Ipv4),
    ];

    /// Bytes that nothing but the seed decides (a linear congruence).
    struct Noise(u64);

    impl Noise {
        fn byte(&mut self) -> u8 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 56) as u8
        }
    }

    /// A frame and where its BTH is.
    #[derive(Clone)]
    struct Sample {
        link: Link,
        bytes: Vec<u8>,
        l3: usize,
        bth: usize,
    }

    impl Sample {
        /// `behind` bytes between BTH and ICRC; all that is free is noise.
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
                };
            let end = bth + BTH_LEN + behind + ICRC_LEN;
            let mut bytes: Vec<u8> = (0..end).map(|_| noise.byte()).collect();
            let mut put = |at: usize, with: &[u8]| bytes[at..at + with.len()].copy_from_slice(with);
            let length = |from: usize| ((end - from) as u16).to_be_bytes();
            let ethertype: [u8; 2] = match net {
                Net::V2Ipv4 => [0x08, 0x00],
                Net::V2Ipv6 => [0x86, 0xdd],
                Net::V1 => [0x89, 0x15],
            };
            match link {
                Link::Ethernet => {
                    for tag in (12..l3 - 2).step_by(4) {
                        put(tag, &[0x81, 0x00]);
                    }
                    put(l3 - 2, &ethertype);
                }
                Link::LinuxSll => put(14, &ethertype),
                Link::LinuxSll2 => put(0, &ethertype),
                Link::RawIp | Link::Other => {}
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

        fn kept(&self) -> Memory {
            let mut memory = Memory::default();
            memory.keep(self.link, &self.bytes, &self.decoded(), 7);
            memory
        }

        fn recalled(&self, memory: &mut Memory, check: bool) -> Option<Recalled> {
            memory.recall(self.link, &self.bytes, self.bytes.len() as u32, check)
        }
    }

    #[test]
    fn a_frame_like_it_is_known_and_judged_as_when_decoded() {
        let mut noise = Noise(1);
        for outer in OUTER {
            for (opcode, least) in [(WRITE_ONLY, 16), (SEND_ONLY, 0), (ACKNOWLEDGE, 4)] {
                for behind in (least..300).step_by(4).chain([2064, 4112]) {
                    let mut memory = Sample::new(outer, opcode, behind, &mut noise).kept();
                    let mut other = Sample::new(outer, opcode, behind, &mut noise);
                    if noise.byte() % 4 == 0 {
                        let from = other.bth + BTH_LEN;
                        let at = from + usize::from(noise.byte()) % (other.bytes.len() - from);
                        // not the announced length
                        let announced = other.bth + 24..other.bth + 28;
                        other.bytes[at] ^= if announced.contains(&at) { 0 } else { 1 };
                    }
                    let packet = other.decoded();
                    let own = Own::of(&packet, &other.bytes);
                    assert_eq!((own.psn, own.apsn), (packet.psn, packet.apsn));
                    let icrc = icrc::check(&packet, &other.bytes);
                    let recalled = Recalled { index: 7, own, icrc };
                    assert_eq!(other.recalled(&mut memory, true), Some(recalled));
                    let unchecked = Recalled { icrc: Icrc::Unchecked, ..recalled };
                    assert_eq!(other.recalled(&mut memory, false), Some(unchecked));
                }
            }
        }
    }

    #[test]
    fn every_bit_of_the_headers_is_free_or_another_shape() {
        let mut noise = Noise(2);
        for outer in OUTER {
            let (link, l3, net) = outer;
            let first = Sample::new(outer, WRITE_ONLY, 80, &mut noise);
            let mut memory = first.kept();
            for bit in 0..8 * (first.bth + 28) {
                let mut other = first.clone();
                other.bytes[bit / 8] ^= 0x80 >> (bit % 8);
                let known = other.recalled(&mut memory, true).is_some();
                let byte = bit / 8;
                let free = match byte {
                    _ if byte < l3 => match link {
                        // addresses, and what a tag says
                        Link::Ethernet => byte < 12 || byte % 4 >= 2 && byte < l3 - 2,
                        Link::LinuxSll => byte < 14,
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
                // one type of tag may be another's
                let tag = link == Link::Ethernet && (12..l3 - 2).contains(&byte) && byte % 4 < 2;
                assert!(tag || known == free, "{outer:?} bit {bit}");
            }
        }
    }

    #[test]
    fn a_run_ends_where_something_else_comes() {
        let mut noise = Noise(4);
        for outer in OUTER {
            let samples: Vec<Sample> = [0xff_fffe, 0xff_ffff, 0, 1, 3]
                .map(|psn| Sample::new(outer, WRITE_ONLY, 80, &mut noise).with_psn(psn))
                .into();
            let run = |samples: &[Sample], check: bool| {
                let mut memory = samples[0].kept();
                let first = samples[0].recalled(&mut memory, check).unwrap();
                let frames = samples[1..].iter();
                let len = |sample: &Sample| sample.bytes.len() as u32;
                memory.run(first, frames.map(|one| (one.link, &one.bytes[..], len(one))), check)
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
    fn what_is_not_all_there_is_another_shape() {
        let mut noise = Noise(3);
        for outer in OUTER {
            let first = Sample::new(outer, SEND_ONLY, 64, &mut noise);
            let (link, bytes, len) = (first.link, &first.bytes, first.bytes.len() as u32);
            let mut memory = first.kept();
            assert!(memory.recall(link, bytes, len, true).is_some());
            let other = if link == Link::RawIp { Link::Ethernet } else { Link::RawIp };
            assert!(memory.recall(other, bytes, len, true).is_none());
            assert!(memory.recall(link, bytes, len + 1, true).is_none());
            for cut in 0..bytes.len() {
                assert!(memory.recall(link, &bytes[..cut], len, true).is_none());
            }
            let snapped = &bytes[..first.bth + 40];
            let mut memory = Memory::default();
            let Frame::Roce(packet) = decode(link, snapped, len, &Ports::default()) else {
                panic!()
            };
            memory.keep(link, snapped, &packet, 0);
            let known = memory.recall(link, snapped, len, true).unwrap();
            assert_eq!(known.icrc, Icrc::Unchecked);
            assert_eq!(known.own, Own { psn: packet.psn, apsn: packet.apsn, icrc: 0 });
        }
    }

    #[test]
    fn options_and_extensions_are_not_kept() {
        let mut noise = Noise(5);
        let mut sample = Sample::new(OUTER[0], SEND_ONLY, 64, &mut noise);
        let options = sample.l3 + 20;
        sample.bytes.splice(options..options, [1; 4]);
        sample.bytes[sample.l3] = 0x46;
        assert_eq!(usize::from(sample.decoded().bth_off), sample.bth + 4);
        assert!(sample.recalled(&mut sample.kept(), true).is_none());
    }
}
