// SPDX-License-Identifier: GPL-2.0-or-later
//! Pairs the two directions of a connection: by CM, by DETH, or by responses that fit requests.

use std::collections::{HashMap, VecDeque};

use super::flow_key::{Folding, Key};
use super::psn;
use crate::cm::{CmMessage, CmReply, CmRequest};
use crate::packet::Packet;

type Address = [u8; 16];

/// How two directions were paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairedBy {
    /// A CM request and its reply, which name both QPs.
    Cm,
    /// The source QP in the DETH.
    Deth,
    /// Responses with the PSNs of requests.
    Psn,
    /// Responses with the PSNs of several requesters, of which one has their UDP source port: both ends
    /// of a connection derive it from the two QPNs (Linux: `rdma_calc_flow_label`).
    SourcePort,
}

impl PairedBy {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cm => "cm",
            Self::Deth => "deth",
            Self::Psn => "psn",
            Self::SourcePort => "source_port",
        }
    }
}

/// Limit of CM requests without a reply, and of pairs whose QPs have not sent yet.
const MAX_CM: usize = 1 << 14;
/// PSNs in a bucket of the index of unpaired directions: 2 to this power.
const BUCKET_BITS: u32 = 12;
const BUCKETS: u32 = 1 << (24 - BUCKET_BITS);
/// Buckets per direction; it leaves the oldest first. No ACK is that late.
const MAX_BUCKETS: u32 = 16;

/// The PSNs under which an unpaired direction is in the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indexed {
    first: u32,
    count: u32,
}

impl Indexed {
    fn end(self) -> u32 {
        (self.first + self.count) % BUCKETS
    }

    /// How many PSNs, starting at `from`, lead to the direction.
    #[inline]
    pub(super) fn covered(self, from: u32) -> usize {
        let end = psn::add((self.first + self.count) << BUCKET_BITS, 0);
        usize::try_from(psn::diff(end, from)).unwrap_or(0)
    }
}

/// An unpaired direction with requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) slot: u32,
    /// UDP source port of its first packet; 0 in RoCE v1.
    pub(super) port: u16,
}

/// CM exchanges, and directions without a partner.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairing {
    requests: HashMap<(Address, u32), u32>,
    /// The peer of each QP.
    peers: HashMap<(Address, u32), (Address, u32)>,
    /// Unpaired directions by source, destination, and bucket of their PSNs.
    unpaired: HashMap<(Address, Address, u32), VecDeque<Candidate>, Folding>,
}

impl Pairing {
    /// Takes a CM message; returns both ends of the connection that it completes.
    pub(super) fn cm(
        &mut self,
        packet: &Packet,
        message: &CmMessage,
    ) -> Option<[(Address, u32); 2]> {
        match *message {
            CmMessage::Request(CmRequest { id, qpn, .. }) => {
                if self.requests.len() >= MAX_CM {
                    self.requests.clear();
                }
                self.requests.insert((packet.src, id), qpn);
                None
            }
            CmMessage::Reply(CmReply { remote_id, qpn, .. }) => {
                let requester = self.requests.remove(&(packet.dst, remote_id))?;
                if self.peers.len() >= MAX_CM {
                    self.peers.clear();
                }
                let (a, b) = ((packet.dst, requester), (packet.src, qpn));
                self.peers.insert(a, b);
                self.peers.insert(b, a);
                Some([a, b])
            }
            _ => None,
        }
    }

    /// The key of the other direction, if CM has named it.
    pub(super) fn by_cm(&self, key: &Key) -> Option<Key> {
        let &(address, qpn) = self.peers.get(&(key.dst, key.dqpn))?;
        (address == key.src).then_some(Key { src: key.dst, dst: key.src, dqpn: qpn, ..*key })
    }

    /// Adds an unpaired direction to the index, for responses with the PSNs `from` to `to`.
    pub(super) fn add(
        &mut self,
        key: &Key,
        candidate: Candidate,
        indexed: &mut Option<Indexed>,
        (from, to): (u32, u32),
    ) {
        let first = from >> BUCKET_BITS;
        let indexed = indexed.get_or_insert(Indexed { first, count: 0 });
        while indexed.covered(to) == 0 {
            let bucket = indexed.end();
            self.unpaired.entry((key.src, key.dst, bucket)).or_default().push_back(candidate);
            indexed.count += 1;
            if indexed.count > MAX_BUCKETS {
                self.leave(key, indexed.first, candidate.slot);
                indexed.first = (indexed.first + 1) % BUCKETS;
                indexed.count -= 1;
            }
        }
    }

    /// Removes a direction from the index.
    pub(super) fn remove(&mut self, key: &Key, slot: u32, indexed: Indexed) {
        for bucket in 0..indexed.count {
            self.leave(key, (indexed.first + bucket) % BUCKETS, slot);
        }
    }

    fn leave(&mut self, key: &Key, bucket: u32, slot: u32) {
        let place = (key.src, key.dst, bucket);
        let Some(candidates) = self.unpaired.get_mut(&place) else { return };
        // the newest are paired soon, the oldest are evicted: it is near one of the ends
        let is_it = |at: &usize| candidates.get(*at).is_some_and(|one| one.slot == slot);
        let last = candidates.len().saturating_sub(1);
        let at = (0..=last / 2).flat_map(|at| [at, last - at]).find(is_it);
        if let Some(at) = at {
            candidates.remove(at);
        }
        if candidates.is_empty() {
            self.unpaired.remove(&place);
        }
    }

    /// Unpaired directions opposite to `key` with requests near a PSN.
    pub(super) fn candidates(&self, key: &Key, psn: u32) -> impl Iterator<Item = &Candidate> {
        let place = (key.dst, key.src, psn >> BUCKET_BITS);
        self.unpaired.get(&place).into_iter().flatten()
    }
}
