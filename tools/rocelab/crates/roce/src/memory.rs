// SPDX-License-Identifier: GPL-2.0-or-later
//! Frames known again by their headers: most differ from one before in little but their PSN.

use crate::decode::{Link, PLAIN};
use crate::packet::{BTH_LEN, Net, Packet};

/// The head of a plain frame that was decoded, and where the result is kept.
#[derive(Clone, Copy, Debug)]
struct Known {
    head: [u8; PLAIN],
    captured: u32,
    wire_len: u32,
    index: u32,
}

const KNOWN: usize = 16;

/// Knows plain frames again that differ from one before in PSN, AckReq, IPv4 identification,
/// checksums or MAC addresses only: what else [`crate::decode_into`] would say is the same.
#[derive(Debug, Default)]
pub struct Memory([Option<Known>; KNOWN]);

/// Ones where plain frames of one shape are the same.
const SAME: [u8; PLAIN] = {
    let mut same = [0xff; PLAIN];
    // MAC addresses, IPv4 identification and checksum, UDP checksum, AckReq and PSN
    let free = [(0, 12), (18, 20), (24, 26), (40, 42), (50, 54)];
    let mut range = 0;
    while range < free.len() {
        let (mut at, end) = free[range];
        while at < end {
            same[at] = 0;
            at += 1;
        }
        range += 1;
    }
    same
};

impl Memory {
    /// Where frames with this head are kept: opcode, length, source and QP differ between shapes.
    #[inline]
    const fn place(head: &[u8; PLAIN]) -> usize {
        ((head[42] ^ head[17] ^ head[29] ^ head[48]).wrapping_add(head[49])) as usize % KNOWN
    }

    /// AckReq with its reserved bits, and the PSN: what is a packet's own in a plain frame.
    #[must_use]
    #[inline]
    pub fn own(frame: &[u8]) -> Option<(u8, u32)> {
        let &[apsn, a, b, c] = frame.first_chunk::<PLAIN>()?.last_chunk::<4>()?;
        Some((apsn, u32::from_be_bytes([0, a, b, c])))
    }

    /// What [`Self::keep`] was given for a frame that differs in [`Self::own`] only.
    #[must_use]
    #[inline]
    pub fn recall(&self, link: Link, frame: &[u8], wire_len: u32) -> Option<u32> {
        let head = frame.first_chunk::<PLAIN>()?;
        let known = self.0[Self::place(head)].as_ref()?;
        let mut differs = 0;
        for ((one, other), same) in head.iter().zip(&known.head).zip(&SAME) {
            differs |= (one ^ other) & same;
        }
        let lengths = known.captured as usize == frame.len() && known.wire_len == wire_len;
        (differs == 0 && lengths && link == Link::Ethernet).then_some(known.index)
    }

    /// Remember that `frame` was decoded as `packet`, which is the caller's number `index`.
    #[inline]
    pub fn keep(&mut self, link: Link, frame: &[u8], packet: &Packet, index: u32) {
        let plain = link == Link::Ethernet
            && packet.net == Net::V2Ipv4
            && packet.l3_off == 14
            && usize::from(packet.bth_off) + BTH_LEN == PLAIN;
        let Some(head) = frame.first_chunk::<PLAIN>().filter(|_| plain) else { return };
        let captured = frame.len() as u32;
        let known = Known { head: *head, captured, wire_len: packet.wire_len, index };
        self.0[Self::place(head)] = Some(known);
    }

    /// Begin anew.
    pub fn forget(&mut self) {
        self.0 = [None; KNOWN];
    }
}
