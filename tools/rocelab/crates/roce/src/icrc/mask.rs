// SPDX-License-Identifier: GPL-2.0-or-later
//! Masks the fields that routers may change: the ICRC counts them as ones.

use crate::header::{GRH_LEN, LRH_LEN, UDP_LEN};
use crate::packet::Net;

/// The mask of headers of the usual length, padded with zeros to whole vectors, as the CRC reads them.
struct Usual<const N: usize>([u8; N]);

/// Ones for the masked fields; `bth` is the offset of the BTH from the network header.
const fn usual<const N: usize>(net: Net, bth: usize) -> Usual<N> {
    let mut ones = [0; N];
    match net {
        Net::V2Ipv4 => {
            ones[1] = 0xff; // type of service
            ones[8] = 0xff; // TTL
            ones[10] = 0xff; // header checksum
            ones[11] = 0xff;
        }
        Net::V2Ipv6 | Net::V1 => {
            ones[0] = 0x0f; // traffic class, flow label
            ones[1] = 0xff;
            ones[2] = 0xff;
            ones[3] = 0xff;
            ones[7] = 0xff; // hop limit
        }
        Net::Infiniband if bth == LRH_LEN => ones[0] = 0xf0, // virtual lane
        Net::Infiniband => {
            let mut at = 0;
            while at < LRH_LEN {
                ones[at] = 0xff;
                at += 1;
            }
            ones[LRH_LEN] = 0x0f; // traffic class, flow label
            ones[LRH_LEN + 1] = 0xff;
            ones[LRH_LEN + 2] = 0xff;
            ones[LRH_LEN + 3] = 0xff;
            ones[LRH_LEN + 7] = 0xff; // hop limit
        }
    }
    if net.is_v2() {
        ones[bth - 2] = 0xff; // UDP checksum
        ones[bth - 1] = 0xff;
    }
    ones[bth + 4] = 0xff; // FECN, BECN, reserved
    Usual(ones)
}

impl<const N: usize> Usual<N> {
    #[inline]
    fn apply(&self, headers: &mut [u8]) -> bool {
        let Some(headers) = headers.first_chunk_mut::<N>() else { return false };
        for (byte, ones) in headers.iter_mut().zip(self.0) {
            *byte |= ones;
        }
        true
    }
}

static USUAL_V1: Usual<64> = usual(Net::V1, GRH_LEN);
static USUAL_V2_IPV4: Usual<48> = usual(Net::V2Ipv4, 20 + UDP_LEN);
static USUAL_V2_IPV6: Usual<64> = usual(Net::V2Ipv6, 40 + UDP_LEN);
static USUAL_LOCAL: Usual<16> = usual(Net::Infiniband, LRH_LEN);
static USUAL_GLOBAL: Usual<64> = usual(Net::Infiniband, LRH_LEN + GRH_LEN);

/// Sets the masked fields of a header copy to ones. `headers` starts at the network header; if it is
/// longer than the headers, masking is faster.
#[inline]
pub(super) fn mask(headers: &mut [u8], net: Net, bth: usize) {
    let done = match (net, bth) {
        (Net::V2Ipv4, 28) => USUAL_V2_IPV4.apply(headers),
        (Net::V2Ipv6, 48) => USUAL_V2_IPV6.apply(headers),
        (Net::V1, GRH_LEN) => USUAL_V1.apply(headers),
        (Net::Infiniband, LRH_LEN) => USUAL_LOCAL.apply(headers),
        (Net::Infiniband, _) => USUAL_GLOBAL.apply(headers),
        _ => false,
    };
    if !done {
        mask_unusual(headers, net, bth);
    }
}

/// Masks headers with IPv4 options or IPv6 extension headers before the BTH.
#[cold]
fn mask_unusual(headers: &mut [u8], net: Net, bth: usize) {
    let mut ones = |from: usize, to: usize| {
        if let Some(field) = headers.get_mut(from..to) {
            field.fill(0xff);
        }
    };
    match net {
        Net::V2Ipv4 => {
            ones(1, 2); // type of service
            ones(8, 9); // TTL
            ones(10, 12); // header checksum
        }
        Net::V2Ipv6 | Net::V1 => {
            ones(1, 4); // traffic class (its upper half below), flow label
            ones(7, 8); // hop limit
        }
        Net::Infiniband if bth == LRH_LEN => {}
        Net::Infiniband => {
            ones(0, LRH_LEN);
            ones(LRH_LEN + 1, LRH_LEN + 4);
            ones(LRH_LEN + 7, LRH_LEN + 8);
        }
    }
    ones(bth + 4, bth + 5); // FECN, BECN, reserved
    if net.is_v2() {
        ones(bth - 2, bth); // UDP checksum
    }
    let (at, bits) = match net {
        Net::V2Ipv4 => return,
        Net::V2Ipv6 | Net::V1 => (0, 0x0f),
        Net::Infiniband if bth == LRH_LEN => (0, 0xf0), // virtual lane
        Net::Infiniband => (LRH_LEN, 0x0f),
    };
    if let Some(byte) = headers.get_mut(at) {
        *byte |= bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_masking_agree() {
        let usual = [
            (Net::V1, 40),
            (Net::V2Ipv4, 28),
            (Net::V2Ipv6, 48),
            (Net::Infiniband, 8),
            (Net::Infiniband, 48),
        ];
        for (net, bth) in usual {
            let mut quick = [0x50; 80];
            let mut slow = quick;
            mask(&mut quick, net, bth);
            mask_unusual(&mut slow, net, bth);
            assert_eq!(quick, slow, "{net:?}");
        }
    }
}
