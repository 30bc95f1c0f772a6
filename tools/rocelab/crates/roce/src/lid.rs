// SPDX-License-Identifier: GPL-2.0-or-later
//! Local identifiers of native InfiniBand in the form of addresses (IBA volume 1, 4.1.3).

use crate::bytes;
use crate::header::LRH_LEN;

/// The first bytes of a LID as an address: a multicast scope that no packet may have (RFC 4291, 2.7).
const LID_PREFIX: [u8; 14] = [0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A local identifier in the form of an address.
fn lid_address(lid: u16) -> [u8; 16] {
    let mut address = [0; 16];
    address[..14].copy_from_slice(&LID_PREFIX);
    address[14..].copy_from_slice(&lid.to_be_bytes());
    address
}

/// The local identifier that an address stands for, if it is one.
pub(crate) fn lid_of(address: [u8; 16]) -> Option<u16> {
    let (prefix, lid) = address.split_last_chunk::<2>()?;
    (prefix == LID_PREFIX).then_some(u16::from_be_bytes(*lid))
}

/// Source and destination of an LRH.
pub(crate) fn lids(frame: &[u8], at: usize) -> Option<([u8; 16], [u8; 16])> {
    let header: [u8; LRH_LEN] = bytes::array(frame, at)?;
    let [_, _, d, e, _, _, s, t] = header;
    Some((lid_address(u16::from_be_bytes([s, t])), lid_address(u16::from_be_bytes([d, e]))))
}
