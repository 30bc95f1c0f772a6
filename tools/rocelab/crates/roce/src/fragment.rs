// SPDX-License-Identifier: GPL-2.0-or-later
//! One fragment of an IP packet (RFC 791, RFC 8200 section 4.5).

use std::ops::Range;

use crate::bytes;
use crate::decode::{ETH_IPV4, ETH_IPV6, MAX_EXTENSIONS, extension_len, ip_version};

const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const IPV6_FRAGMENT: u8 = 44;
const FRAGMENT_LEN: usize = 8;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE: u16 = 0x2000;

/// The header that a fragment shares with the others of its packet.
#[derive(Clone, Debug)]
enum Shared {
    V4,
    /// Where the number of the next header stands, and the number behind the fragment header.
    V6 {
        next_at: usize,
        next: u8,
    },
}

/// A fragment. Offsets are those in its frame.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    shared: Shared,
    /// Start of the IP header.
    l3: usize,
    /// What comes before the fragment of every fragment of the packet: up to here.
    head: usize,
    /// Where the fragment itself begins.
    pub(crate) data: usize,
    /// Which bytes of the packet it has.
    pub(crate) range: Range<usize>,
    /// Others follow.
    pub(crate) more: bool,
    /// Source, destination and identification.
    pub(crate) id: ([u8; 16], [u8; 16], u32),
}

impl Fragment {
    /// The fragment in a frame whose IP header is at `l3`.
    pub(crate) fn of(frame: &[u8], l3: usize) -> Option<Self> {
        match ip_version(frame, l3)? {
            ETH_IPV4 => Self::of_ipv4(frame, l3),
            ETH_IPV6 => Self::of_ipv6(frame, l3),
            _ => None,
        }
    }

    fn of_ipv4(frame: &[u8], l3: usize) -> Option<Self> {
        let header: [u8; IPV4_LEN] = bytes::array(frame, l3)?;
        let data = l3 + usize::from(header[0] & 0xf) * 4;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let place = u16::from_be_bytes([header[6], header[7]]);
        let from = usize::from(place & 0x1fff) * 8;
        let len = (l3 + total).checked_sub(data)?;
        let end = |at| bytes::array::<4>(&header, at).map(crate::segment::mapped);
        let id = u16::from_be_bytes([header[4], header[5]]);
        Some(Self {
            shared: Shared::V4,
            l3,
            head: data,
            data,
            range: from..from + len,
            more: place & MORE != 0,
            id: (end(12)?, end(16)?, id.into()),
        })
    }

    fn of_ipv6(frame: &[u8], l3: usize) -> Option<Self> {
        let header: [u8; IPV6_LEN] = bytes::array(frame, l3)?;
        let end = l3 + IPV6_LEN + usize::from(u16::from_be_bytes([header[4], header[5]]));
        let (mut next_at, mut at) = (l3 + 6, l3 + IPV6_LEN);
        for _ in 0..=MAX_EXTENSIONS {
            let kind = bytes::u8(frame, next_at)?;
            if kind == IPV6_FRAGMENT {
                let place = bytes::u16(frame, at + 2)?;
                let (from, data) = (usize::from(place & 0xfff8), at + FRAGMENT_LEN);
                return Some(Self {
                    shared: Shared::V6 { next_at, next: bytes::u8(frame, at)? },
                    l3,
                    head: at,
                    data,
                    range: from..from + end.checked_sub(data)?,
                    more: place & 1 != 0,
                    id: (
                        bytes::array(&header, 8)?,
                        bytes::array(&header, 24)?,
                        bytes::u32(frame, at + 4)?,
                    ),
                });
            }
            next_at = at;
            at += extension_len(kind, bytes::u8(frame, at + 1)?)?;
        }
        None
    }

    /// What comes before the fragment, as it is before a whole packet of `total` bytes; only of the first one.
    pub(crate) fn whole_head(&self, frame: &[u8], total: usize) -> Option<Vec<u8>> {
        let mut head = frame.get(..self.head)?.to_vec();
        let l3 = self.l3;
        let put = |head: &mut Vec<u8>, at: usize, value: u16| {
            head.get_mut(at..at + 2).map(|place| place.copy_from_slice(&value.to_be_bytes()))
        };
        match self.shared {
            Shared::V4 => {
                put(&mut head, l3 + 2, u16::try_from(self.head - l3 + total).ok()?)?;
                let flags = bytes::u16(frame, l3 + 6)? & DONT_FRAGMENT;
                put(&mut head, l3 + 6, flags)?;
                put(&mut head, l3 + 10, 0)?;
                let sum = checksum(head.get(l3..)?);
                put(&mut head, l3 + 10, sum)?;
            }
            Shared::V6 { next_at, next } => {
                let extensions = self.head.checked_sub(l3 + IPV6_LEN)?;
                put(&mut head, l3 + 4, u16::try_from(extensions + total).ok()?)?;
                *head.get_mut(next_at)? = next;
            }
        }
        Some(head)
    }
}

/// The checksum of an IPv4 header whose own is zero.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| match *pair {
        [high, low] => u32::from(u16::from_be_bytes([high, low])),
        _ => 0,
    });
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}
