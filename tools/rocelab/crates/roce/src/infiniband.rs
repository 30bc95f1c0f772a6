// SPDX-License-Identifier: GPL-2.0-or-later
//! Native InfiniBand: packets that begin with a Local Route Header (IBA volume 1, 7.7).

use crate::bytes;
use crate::decode::{Kind, NEXT_HEADER_IBA, Walk, bth, cut, route};
use crate::header::{GRH_LEN, LRH_LEN};
use crate::lid::lids;
use crate::packet::Net;

/// The next header, LRH byte 1: a BTH.
const LNH_LOCAL: u8 = 2;
/// A GRH, then a BTH.
const LNH_GLOBAL: u8 = 3;

impl Walk<'_> {
    /// A packet whose LRH is at `at`. The length in it counts words up to the end of the ICRC.
    pub(crate) fn lrh(&mut self, at: usize) -> Option<Kind> {
        let header: [u8; LRH_LEN] = bytes::array(self.frame, at)?;
        let words = u16::from_be_bytes([header[4], header[5]]) & 0x7ff;
        let end = at + 4 * usize::from(words);
        let behind = at + LRH_LEN;
        let packet = &mut *self.packet;
        packet.l3_off = u16::try_from(at).ok()?;
        packet.net = Net::Infiniband;
        match header[1] & 3 {
            LNH_LOCAL => {
                (packet.src, packet.dst) = lids(self.frame, at)?;
                bth(self.frame, behind, end, packet)
            }
            LNH_GLOBAL => {
                let Some(grh) = bytes::array::<GRH_LEN>(self.frame, behind) else {
                    return Some(cut(behind + GRH_LEN));
                };
                if grh[0] >> 4 != 6 || grh[6] != NEXT_HEADER_IBA {
                    return None;
                }
                route(&grh, packet);
                let by_grh = behind + GRH_LEN + usize::from(u16::from_be_bytes([grh[4], grh[5]]));
                packet.bad_length = by_grh != end;
                bth(self.frame, behind + GRH_LEN, end, packet)
            }
            _ => None,
        }
    }
}
