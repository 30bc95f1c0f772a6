// SPDX-License-Identifier: GPL-2.0-or-later
//! The fixed header fields of a frame: frames with the same shape decode to the same values.

use crate::bytes;
use crate::decode::{ETH_IPV4, ETH_IPV6, ETH_ROCE_V1, link_layer};
use crate::header::{BTH_LEN, GRH_LEN, UDP_LEN};
use crate::link::Link;
use crate::packet::Net;

/// Bits of [`Layout::hash`].
pub(crate) const HASH_BITS: u32 = 11;

/// Words in the longest headers.
const MAX_WORDS: usize = 8;

/// Headers of the usual length, from the network header to the end of the BTH: no IPv4 options, no
/// IPv6 extension headers. They are compared by words; the last two words overlap.
pub(crate) struct Layout<const LEN: usize, const WORDS: usize> {
    pub(crate) net: Net,
    ethertype: u16,
    /// Zeros for the bits in which packets of one shape may differ.
    fixed: [u64; WORDS],
    /// The word with (the end of) the destination address.
    destination: usize,
}

pub(crate) const V2_IPV4: usize = 20 + UDP_LEN + BTH_LEN;
pub(crate) const V2_IPV6: usize = 40 + UDP_LEN + BTH_LEN;
pub(crate) const V1: usize = GRH_LEN + BTH_LEN;
pub(crate) static LAYOUT_V2_IPV4: Layout<V2_IPV4, 5> = Layout::new(Net::V2Ipv4, ETH_IPV4, 2);
pub(crate) static LAYOUT_V2_IPV6: Layout<V2_IPV6, 8> = Layout::new(Net::V2Ipv6, ETH_IPV6, 4);
pub(crate) static LAYOUT_V1: Layout<V1, 7> = Layout::new(Net::V1, ETH_ROCE_V1, 4);

impl<const LEN: usize, const WORDS: usize> Layout<LEN, WORDS> {
    const fn new(net: Net, ethertype: u16, destination: usize) -> Self {
        let mut bytes = [0xff; LEN];
        match net {
            Net::V2Ipv4 => {
                clear(&mut bytes, 4, 2); // identification
                clear(&mut bytes, 10, 2); // header checksum
            }
            Net::V2Ipv6 | Net::V1 => {
                bytes[1] = 0xf0; // flow label
                clear(&mut bytes, 2, 2);
            }
            Net::Infiniband => panic!("has no layout"),
        }
        let bth = LEN - BTH_LEN;
        if !matches!(net, Net::V1) {
            clear(&mut bytes, bth - 2, 2); // UDP checksum
        }
        bytes[bth + 8] = 0x7f; // AckReq
        clear(&mut bytes, bth + 9, 3); // PSN
        Self { net, ethertype, fixed: words(&bytes), destination }
    }

    #[inline]
    fn words(&self, headers: &[u8; LEN]) -> [u64; WORDS] {
        let mut words = words(headers);
        for (word, fixed) in words.iter_mut().zip(self.fixed) {
            *word &= fixed;
        }
        words
    }
}

const fn clear(bytes: &mut [u8], at: usize, len: usize) {
    let mut offset = 0;
    while offset < len {
        bytes[at + offset] = 0;
        offset += 1;
    }
}

#[inline]
const fn words<const LEN: usize, const WORDS: usize>(bytes: &[u8; LEN]) -> [u64; WORDS] {
    assert!(WORDS <= MAX_WORDS && WORDS == LEN.div_ceil(8));
    let mut words = [0; WORDS];
    let mut word = 0;
    while word < WORDS {
        let at = if word + 1 < WORDS { 8 * word } else { LEN - 8 };
        let mut part = [0; 8];
        let mut byte = 0;
        while byte < part.len() {
            part[byte] = bytes[at + byte];
            byte += 1;
        }
        words[word] = u64::from_ne_bytes(part);
        word += 1;
    }
    words
}

/// Everything that determines how a frame is decoded, except the DMA length of a RETH.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    words: [u64; MAX_WORDS],
    captured: u32,
    wire_len: u32,
    /// Offset of the network header; together with the link type it gives the number of VLAN tags.
    l3_off: u32,
    vlans: u32,
    link: Link,
    pub(crate) net: Net,
}

impl<const LEN: usize, const WORDS: usize> Layout<LEN, WORDS> {
    pub(crate) fn shape(
        &self,
        link: Link,
        l3_off: usize,
        vlans: u32,
        frame: &[u8],
        wire_len: u32,
    ) -> Option<Shape> {
        let mut words = [0; MAX_WORDS];
        let headers = frame.get(l3_off..)?.first_chunk()?;
        for (to, from) in words.iter_mut().zip(self.words(headers)) {
            *to = from;
        }
        let (captured, l3_off) = (frame.len() as u32, l3_off as u32);
        Some(Shape { words, captured, wire_len, l3_off, vlans, link, net: self.net })
    }

    /// The headers of a frame and the rest of it, if it has this shape.
    #[inline(always)]
    pub(crate) fn split<'a>(
        &self,
        shape: &Shape,
        link: Link,
        frame: &'a [u8],
        wire_len: u32,
    ) -> Option<(&'a [u8; LEN], &'a [u8])> {
        let same = frame.len() == shape.captured as usize
            && (wire_len, link, self.net) == (shape.wire_len, shape.link, shape.net)
            && shape.matches_link_layer(frame, self.ethertype);
        if !same {
            return None;
        }
        let (headers, rest) = frame.get(shape.l3_off as usize..)?.split_first_chunk()?;
        let mut differ = 0;
        for (one, other) in self.words(headers).iter().zip(&shape.words) {
            differ |= one ^ other;
        }
        (differ == 0).then_some((headers, rest))
    }

    /// A number of [`HASH_BITS`] from QP, opcode, destination and length, and one of 32 bits. The first differs
    /// for QPs that differ only in their last byte.
    #[inline]
    pub(crate) fn hash(&self, headers: &[u8; LEN], wire_len: u32) -> (usize, u32) {
        let words = self.words(headers);
        // the QP's last byte on top
        let qp = u64::from_le(words[WORDS - 1]).rotate_left(32);
        let opcode = u64::from_le(words[WORDS - 2]).rotate_left(8);
        let mixed = qp ^ opcode ^ words[self.destination] ^ u64::from(wire_len);
        let hash = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((hash >> (64 - HASH_BITS)) as usize, (hash >> 16) as u32)
    }
}

impl Shape {
    #[inline]
    fn matches_link_layer(&self, frame: &[u8], ethertype: u16) -> bool {
        if self.link == Link::Ethernet && self.l3_off == 14 {
            return bytes::u16(frame, 12) == Some(ethertype);
        }
        link_layer(self.link, frame).is_some_and(|found| {
            (found.ethertype, found.at, found.vlans)
                == (ethertype, self.l3_off as usize, self.vlans)
        })
    }
}
