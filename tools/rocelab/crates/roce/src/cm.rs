// SPDX-License-Identifier: GPL-2.0-or-later
//! Communication management: the MADs on QP1 that connect queue pairs (IBA volume 1, chapter 12).

use crate::bytes;
use crate::opcode::{Class, Service};
use crate::packet::Packet;

/// The general services QP.
pub const GSI_QPN: u32 = 1;
const CLASS_CM: u8 = 0x07;
const MAD_HEADER: usize = 24;

/// A CM message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmMessage {
    /// REQ: asks for a connection.
    Request(CmRequest),
    /// MRA: asks for patience.
    Received(CmIds),
    /// REJ: refuses, or gives up.
    Reject(CmReject),
    /// REP: the reply to a request.
    Reply(CmReply),
    /// RTU: both ends are ready.
    Ready(CmIds),
    /// DREQ: ends a connection.
    Disconnect(CmIds),
    /// DREP: the reply to it.
    Disconnected(CmIds),
}

/// The communication IDs in a message: the sender's, and the receiver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmIds {
    /// The sender's.
    pub local: u32,
    /// The receiver's; 0 if the sender does not know it.
    pub remote: u32,
}

/// What a REQ asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CmRequest {
    /// The requester's communication ID.
    pub id: u32,
    /// The requester's QP.
    pub qpn: u32,
    /// The service; see [`Self::port`].
    pub service_id: u64,
    /// Requests (READs and atomics) that the requester executes at a time for its peer.
    pub responder_resources: u8,
    /// Requests that the requester wants to have outstanding.
    pub initiator_depth: u8,
    /// Transport service type: 0 RC, 1 UC, 2 RD, 3 others.
    pub service_type: u8,
    /// The first PSN that the requester sends.
    pub psn: u32,
    /// Retries after timeouts and sequence errors.
    pub retries: u8,
    /// Retries after RNR NAKs; 7: without end.
    pub rnr_retries: u8,
    /// Retries of the CM itself.
    pub cm_retries: u8,
    /// The code of the path MTU, see [`Self::mtu`].
    pub mtu_code: u8,
    /// The code of the local ACK timeout, see [`Self::ack_timeout_ns`].
    pub timeout_code: u8,
}

impl CmRequest {
    /// The port space (`tcp`, `udp`, `ib`) and port of a service ID of the RDMA IP CM service (IBA annex A11).
    #[must_use]
    pub const fn port(&self) -> Option<(&'static str, u16)> {
        let port = self.service_id as u16;
        match self.service_id >> 16 {
            0x0106 => Some(("tcp", port)),
            0x0111 => Some(("udp", port)),
            0x013f => Some(("ib", port)),
            _ => None,
        }
    }

    /// The path MTU, bytes; `None` for a reserved code.
    #[must_use]
    pub const fn mtu(&self) -> Option<u32> {
        match self.mtu_code {
            code @ 1..=5 => Some(128 << code),
            _ => None,
        }
    }

    /// The local ACK timeout, ns: 4.096 µs times a power of two; `None`: no timer.
    #[must_use]
    pub const fn ack_timeout_ns(&self) -> Option<u64> {
        match self.timeout_code {
            0 => None,
            code => Some(4096 << code),
        }
    }
}

/// What a REP grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CmReply {
    /// The replier's communication ID.
    pub id: u32,
    /// The requester's communication ID.
    pub remote_id: u32,
    /// The replier's QP.
    pub qpn: u32,
    /// Requests (READs and atomics) that the replier executes at a time for its peer.
    pub responder_resources: u8,
    /// Requests that the replier will have outstanding.
    pub initiator_depth: u8,
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmReject {
    /// The communication IDs.
    pub ids: CmIds,
    /// Which message is refused: 0 the REQ, 1 the REP, else none.
    pub of: u8,
    /// The code of the reason, see [`reject_reason`].
    pub reason: u16,
}

/// Parses a packet's CM message; `None` if it has none of those.
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
    let ids = || Some(CmIds { local: bytes::u32(body, 0)?, remote: bytes::u32(body, 4)? });
    Some(match bytes::u16(mad, 16)? {
        0x0010 => CmMessage::Request(request(body)?),
        0x0011 => CmMessage::Received(ids()?),
        0x0012 => CmMessage::Reject(CmReject {
            ids: ids()?,
            of: bytes::u8(body, 8)? >> 6,
            reason: bytes::u16(body, 10)?,
        }),
        0x0013 => CmMessage::Reply(CmReply {
            id: bytes::u32(body, 0)?,
            remote_id: bytes::u32(body, 4)?,
            qpn: bytes::u24(body, 12)?,
            responder_resources: bytes::u8(body, 24).unwrap_or(0),
            initiator_depth: bytes::u8(body, 25).unwrap_or(0),
        }),
        0x0014 => CmMessage::Ready(ids()?),
        0x0015 => CmMessage::Disconnect(ids()?),
        0x0016 => CmMessage::Disconnected(ids()?),
        _ => return None,
    })
}

/// A packet cut behind the QP number still names the QP.
fn request(body: &[u8]) -> Option<CmRequest> {
    let byte = |at| bytes::u8(body, at).unwrap_or(0);
    Some(CmRequest {
        id: bytes::u32(body, 0)?,
        service_id: bytes::u64(body, 8)?,
        qpn: bytes::u24(body, 32)?,
        responder_resources: byte(35),
        initiator_depth: byte(39),
        service_type: byte(43) >> 1 & 3,
        psn: bytes::u24(body, 44).unwrap_or(0),
        retries: byte(47) & 7,
        mtu_code: byte(50) >> 4,
        rnr_retries: byte(50) & 7,
        cm_retries: byte(51) >> 4,
        timeout_code: byte(95) >> 3,
    })
}

/// What the reason of a REJ means, and what it mostly comes from (IBA volume 1, 12.6.7.2).
#[must_use]
pub const fn reject_reason(reason: u16) -> &'static str {
    match reason {
        1 => "no queue pair available",
        2 => "no end-to-end context available",
        3 => "no resources available",
        4 => "timeout: the other side did not answer in time",
        5 => "unsupported request",
        6 => "invalid communication ID",
        7 => "invalid communication instance",
        8 => "invalid service ID: nobody listens on this port",
        9 => "invalid transport service type",
        10 => {
            "stale connection: a connection with this queue pair exists still; one side restarted or lost it"
        }
        11 => "the reliable datagram channel does not exist",
        12 => "primary remote port GID rejected: the address or the GID's type is not the peer's",
        13 => "primary remote port LID rejected",
        14 => "invalid primary service level",
        15 => "invalid primary traffic class",
        16 => "invalid primary hop limit",
        17 => "invalid primary packet rate",
        18 => "alternate remote port GID rejected",
        19 => "alternate remote port LID rejected",
        20 => "invalid alternate service level",
        21 => "invalid alternate traffic class",
        22 => "invalid alternate hop limit",
        23 => "invalid alternate packet rate",
        24 => "port and CM redirected",
        25 => "port redirected",
        26 => "invalid path MTU",
        27 => "insufficient responder resources",
        28 => "rejected by the application",
        29 => "RNR retry count rejected",
        30 => "duplicate local communication ID",
        31 => "unsupported class version",
        32 => "invalid primary flow label",
        33 => "invalid alternate flow label",
        35 => "vendor option not supported",
        _ => "a reason that the specification reserves",
    }
}
