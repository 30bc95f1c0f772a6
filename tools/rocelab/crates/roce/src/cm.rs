// SPDX-License-Identifier: GPL-2.0-or-later
//! Communication management: the MADs on QP1 that pair queue pairs (IBA volume 1, chapter 12).

use crate::bytes;
use crate::opcode::{Class, Service};
use crate::packet::Packet;

/// The general services QP.
pub const GSI_QPN: u32 = 1;
const CLASS_CM: u8 = 0x07;
const MAD_HEADER: usize = 24;

/// A CM message that names QPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmMessage {
    /// A request for a connection by `qpn`.
    Request {
        /// The requester's communication ID.
        id: u32,
        /// The requester's QP.
        qpn: u32,
    },
    /// The reply, by `qpn`, to the request with `remote_id`.
    Reply {
        /// The requester's communication ID.
        remote_id: u32,
        /// The replier's QP.
        qpn: u32,
    },
}

/// Parses a packet's CM message; `None` if it has none that names a QP.
#[must_use]
pub fn parse(packet: &Packet, frame: &[u8]) -> Option<CmMessage> {
    let op = packet.op()?;
    if packet.dqpn != GSI_QPN || op.service() != Service::Ud || op.class != Class::Send {
        return None;
    }
    let mad = packet.payload(frame);
    if bytes::u8(mad, 1)? != CLASS_CM {
        return None;
    }
    let body = mad.get(MAD_HEADER..)?;
    match bytes::u16(mad, 16)? {
        0x0010 => Some(CmMessage::Request { id: bytes::u32(body, 0)?, qpn: bytes::u24(body, 32)? }),
        0x0013 => {
            Some(CmMessage::Reply { remote_id: bytes::u32(body, 4)?, qpn: bytes::u24(body, 12)? })
        }
        _ => None,
    }
}
