// SPDX-License-Identifier: GPL-2.0-or-later
//! Looks for RoCE at any offset of a frame, in layers that are not looked into.

use crate::bytes;
use crate::decode::{Frame, PROTO_UDP, Ports, ROCE_PORT, decode};
use crate::icrc;
use crate::link::Link;
use crate::packet::Icrc;

/// Offsets that are tried: headers of what is not looked into are shorter.
const FARTHEST: usize = 192;

/// Whether a part of the frame is an IP header, UDP to port 4791 and a BTH with a correct ICRC: no coincidence.
#[must_use]
pub fn holds_roce(frame: &[u8]) -> bool {
    (0..FARTHEST.min(frame.len())).any(|at| begins(frame, at) && is_right(frame, at))
}

fn begins(frame: &[u8], at: usize) -> bool {
    let port = |at| bytes::u16(frame, at) == Some(ROCE_PORT);
    match frame.get(at).map(|first| first >> 4) {
        Some(4) => {
            let len = usize::from(frame[at] & 0xf) * 4;
            bytes::u8(frame, at + 9) == Some(PROTO_UDP) && port(at + len + 2)
        }
        Some(6) => bytes::u8(frame, at + 6) == Some(PROTO_UDP) && port(at + 42),
        _ => false,
    }
}

fn is_right(frame: &[u8], at: usize) -> bool {
    let inner = frame.get(at..).unwrap_or_default();
    match decode(Link::RawIp, inner, inner.len() as u32, &Ports::default()) {
        Frame::Roce(packet) => icrc::check(&packet, inner) == Icrc::Ok,
        _ => false,
    }
}
