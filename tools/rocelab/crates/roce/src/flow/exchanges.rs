// SPDX-License-Identifier: GPL-2.0-or-later
//! How connections were set up and ended: the messages of the CM, by connection.

use std::collections::HashMap;

use super::connection::{Connection, Endpoint};
use super::stats::Stats;
use crate::cm::{CmIds, CmMessage, CmReject, CmReply, CmRequest, reject_reason};
use crate::finding::{At, Findings, Rule};
use crate::packet::address;

type Address = [u8; 16];

/// Exchanges that are kept; hostile captures have more.
const MAX_EXCHANGES: usize = 4096;
/// Of one QP with one responder: each of them is compared with each connection of the QP.
const MAX_SAME_ENDS: usize = 64;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Who sent the REQ.
    Requester,
    /// Whom it was sent to.
    Responder,
}

impl End {
    const fn other(self) -> Self {
        match self {
            Self::Requester => Self::Responder,
            Self::Responder => Self::Requester,
        }
    }

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requester => "requester",
            Self::Responder => "responder",
        }
    }
}

/// The messages about one connection.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Who asks.
    pub requester: Address,
    /// Who is asked.
    pub responder: Address,
    /// The connection of the messages themselves.
    pub messages: Option<u32>,
    /// The responder's communication ID.
    responder_id: Option<u32>,
    /// The first REQ.
    pub first: At,
    /// Time of the last message.
    pub last_ns: i64,
    /// What the REQ asks for.
    pub request: CmRequest,
    /// How often it was sent.
    pub requests: u64,
    /// MRAs.
    pub received: u64,
    /// The REP.
    pub reply: Option<CmReply>,
    /// An RTU was captured.
    pub ready: bool,
    /// A REJ, and who sent it.
    pub reject: Option<(CmReject, End)>,
    /// Who sent a DREQ.
    pub disconnect: Option<End>,
    /// A DREP was captured.
    pub disconnected: bool,
    /// The connection that was set up, if packets of it were captured.
    made: Option<Made>,
}

/// What is kept of a connection that was set up.
#[derive(Clone, Copy, Debug)]
struct Made {
    id: u32,
    first_ns: i64,
    /// What the requester and the responder sent.
    ways: [Option<Reads>; 2],
}

/// The READs of a direction.
#[derive(Clone, Copy, Debug)]
struct Reads {
    /// See [`Stats::max_reads`].
    most: u32,
    deepest: At,
    missing: u64,
}

impl Reads {
    fn of(way: &Stats) -> Self {
        Self { most: way.max_reads, deepest: way.deepest_read, missing: way.missing }
    }
}

impl Exchange {
    /// The connection that was set up, if packets of it were captured; complete at the end.
    #[must_use]
    pub fn connection(&self) -> Option<u32> {
        self.made.map(|made| made.id)
    }

    /// How far it came, as in files.
    #[must_use]
    pub const fn state(&self) -> &'static str {
        if self.disconnected {
            "disconnected"
        } else if self.disconnect.is_some() {
            "disconnecting"
        } else if self.reject.is_some() {
            "rejected"
        } else if self.ready || self.made.is_some() {
            "established"
        } else if self.reply.is_some() {
            "replied"
        } else if self.received > 0 {
            "awaited"
        } else {
            "unanswered"
        }
    }

    const fn is_over(&self) -> bool {
        self.reject.is_some() || self.disconnect.is_some()
    }

    /// Takes a connection between its ends; the first one after the REQ is that which it made.
    fn note(&mut self, made: &Connection, requester: Endpoint) {
        let earlier = self.made.as_ref().is_none_or(|before| made.first_ns < before.first_ns);
        if !earlier || made.last_ns < self.first.time_ns {
            return;
        }
        let [a, b] = made.directions.each_ref().map(|way| way.as_ref().map(Reads::of));
        let ways = if made.a == requester { [a, b] } else { [b, a] };
        self.made = Some(Made { id: made.id, first_ns: made.first_ns, ways });
    }

    /// Whether each end has no more READs and atomics outstanding than the other executes at a time.
    fn check_depth(&self, made: &Made, reply: CmReply, findings: &mut Findings) {
        let [ours, theirs] = made.ways;
        let limits =
            [("REP", reply.responder_resources), ("REQ", self.request.responder_resources)];
        for ((from, other), (message, limit)) in
            [(ours, theirs), (theirs, ours)].into_iter().zip(limits)
        {
            let Some(from) = from.filter(|from| from.most > u32::from(limit)) else {
                continue;
            };
            // of those that seem outstanding, responses may be missing in the capture
            let partial = other.is_none_or(|other| other.missing > 0) || from.missing > 0;
            findings.add(Rule::ReadDepth, from.deepest, Some(made.id), partial, || {
                format!(
                    "{} READs and atomics are outstanding at once; the responder resources of the other \
                     end's {message} are {limit}",
                    from.most
                )
            });
        }
    }

    /// Service, and both ends.
    fn subject(&self) -> String {
        let service = match self.request.port() {
            Some((space, port)) => format!("port {port} ({space})"),
            None => format!("service {:#018x}", self.request.service_id),
        };
        let (from, to) = (address(self.requester), address(self.responder));
        format!("for {service} from {from} to {to}")
    }
}

/// All exchanges of a capture.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchanges {
    pub(super) list: Vec<Exchange>,
    /// Exchanges beyond the limit.
    pub(super) unreported: u64,
    /// By an end's address and its communication ID.
    ids: HashMap<(Address, u32), (usize, End)>,
    /// By requester, its QP, and responder.
    by_ends: HashMap<(Address, u32, Address), Vec<usize>>,
}

impl Exchanges {
    /// Takes a message from `src` to `dst`, which belongs to connection `messages`.
    pub(super) fn take(
        &mut self,
        message: CmMessage,
        (src, dst): (Address, Address),
        at: At,
        messages: Option<u32>,
        findings: &mut Findings,
    ) {
        if let CmMessage::Request(request) = message {
            self.request(request, (src, dst), at, messages);
            return;
        }
        let ids = match message {
            CmMessage::Reply(CmReply { id: local, remote_id: remote, .. }) => {
                CmIds { local, remote }
            }
            CmMessage::Reject(reject) => reject.ids,
            CmMessage::Request(_) => return,
            CmMessage::Received(ids)
            | CmMessage::Ready(ids)
            | CmMessage::Disconnect(ids)
            | CmMessage::Disconnected(ids) => ids,
        };
        // whoever gives up alone does not know the other's ID
        let by_remote = self.ids.get(&(dst, ids.remote)).map(|&(at, end)| (at, end.other()));
        let Some((index, by)) = by_remote.or_else(|| self.ids.get(&(src, ids.local)).copied())
        else {
            return;
        };
        let Some(one) = self.list.get_mut(index) else { return };
        one.last_ns = one.last_ns.max(at.time_ns);
        // one for each: a hostile peer invents more
        if by == End::Responder && ids.local != 0 && one.responder_id.is_none() {
            one.responder_id = Some(ids.local);
            self.ids.insert((src, ids.local), (index, End::Responder));
        }
        match message {
            CmMessage::Reply(reply) => one.reply = Some(reply),
            CmMessage::Received(_) => one.received += 1,
            CmMessage::Ready(_) => one.ready = true,
            CmMessage::Disconnect(_) => one.disconnect = Some(by),
            CmMessage::Disconnected(_) => one.disconnected = true,
            CmMessage::Reject(reject) => {
                one.reject = Some((reject, by));
                let one = &*one;
                findings.add(Rule::CmRejected, at, messages, false, || {
                    let (subject, who) = (one.subject(), by.name());
                    let (reason, why) = (reject.reason, reject_reason(reject.reason));
                    format!("the {who} rejects the connection {subject}: {why} (reason {reason})")
                });
            }
            CmMessage::Request(_) => {}
        }
    }

    fn request(
        &mut self,
        request: CmRequest,
        (src, dst): (Address, Address),
        at: At,
        messages: Option<u32>,
    ) {
        let key = (src, request.id);
        let known = self.ids.get(&key).and_then(|&(index, _)| self.list.get_mut(index));
        let again = |one: &&mut Exchange| {
            !one.is_over() && (one.responder, one.request.qpn) == (dst, request.qpn)
        };
        if let Some(one) = known.filter(again) {
            one.requests += 1;
            one.last_ns = one.last_ns.max(at.time_ns);
            return;
        }
        if self.list.len() >= MAX_EXCHANGES {
            self.unreported += 1;
            self.ids.remove(&key);
            return;
        }
        self.ids.insert(key, (self.list.len(), End::Requester));
        let same_ends = self.by_ends.entry((src, request.qpn, dst)).or_default();
        if same_ends.len() < MAX_SAME_ENDS {
            same_ends.push(self.list.len());
        }
        self.list.push(Exchange {
            requester: src,
            responder: dst,
            messages,
            responder_id: None,
            first: at,
            last_ns: at.time_ns,
            request,
            requests: 1,
            received: 0,
            reply: None,
            ready: false,
            reject: None,
            disconnect: None,
            disconnected: false,
            made: None,
        });
    }

    /// Takes a connection that has ended: one of the exchanges may have made it.
    pub(super) fn note(&mut self, made: &Connection) {
        for (own, other) in [(made.a, made.b), (made.b, made.a)] {
            let Some(qpn) = own.qpn else { continue };
            let between = self.by_ends.get(&(own.address, qpn, other.address));
            for &index in between.into_iter().flatten() {
                let Some(one) = self.list.get_mut(index) else { continue };
                if one.reply.is_some_and(|reply| Some(reply.qpn) == other.qpn) {
                    one.note(made, own);
                }
            }
        }
    }

    /// Says what was wrong with the connections that were set up, and with requests without an answer.
    pub(super) fn finish(&mut self, findings: &mut Findings) {
        for one in &self.list {
            if let (Some(reply), Some(made)) = (one.reply, &one.made) {
                one.check_depth(made, reply, findings);
            }
            if one.state() != "unanswered" {
                continue;
            }
            findings.add(Rule::CmUnanswered, one.first, one.messages, true, || {
                let (count, subject) = (one.requests, one.subject());
                let seconds = one.last_ns.saturating_sub(one.first.time_ns) as f64 / 1e9;
                format!(
                    "{count} ConnectRequest(s) {subject} within {seconds:.3} s, and no answer in the \
                     capture: it was not captured, or none was given (nobody has this address, or \
                     UDP port 4791 is blocked on the way)"
                )
            });
        }
    }
}
