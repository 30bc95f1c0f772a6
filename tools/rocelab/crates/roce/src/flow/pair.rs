// SPDX-License-Identifier: GPL-2.0-or-later
//! Which two directions are one connection: by CM, by DETH, or by responses that fit requests.

use std::collections::{HashMap, VecDeque};

use super::key::{Folding, Key};
use crate::cm::CmMessage;
use crate::packet::Packet;

type Address = [u8; 16];

/// How two directions were paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairedBy {
    /// A CM request and its reply name both QPs.
    Cm,
    /// The DETH names the source QP.
    Deth,
    /// Responses carry PSNs of the requests.
    Psn,
}

impl PairedBy {
    /// A word for files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cm => "cm",
            Self::Deth => "deth",
            Self::Psn => "psn",
        }
    }
}

/// Requests waiting for their reply, and pairs whose QPs have not spoken yet.
const MAX_CM: usize = 1 << 14;
/// Directions looked at for one response.
const MAX_CANDIDATES: usize = 64;

/// CM exchanges and directions without a partner.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    requests: HashMap<(Address, u32), u32>,
    /// From a QP to the one at its other end.
    peers: HashMap<(Address, u32), (Address, u32)>,
    /// Slots of directions that wait, by source and destination address.
    waiting: HashMap<(Address, Address), VecDeque<u32>, Folding>,
}

impl Pairing {
    /// Learn from a CM message; gives both ends of the connection that it makes.
    pub(super) fn cm(
        &mut self,
        packet: &Packet,
        message: CmMessage,
    ) -> Option<[(Address, u32); 2]> {
        match message {
            CmMessage::Request { id, qpn } => {
                if self.requests.len() >= MAX_CM {
                    self.requests.clear();
                }
                self.requests.insert((packet.src, id), qpn);
                None
            }
            CmMessage::Reply { remote_id, qpn } => {
                let requester = self.requests.remove(&(packet.dst, remote_id))?;
                if self.peers.len() >= MAX_CM {
                    self.peers.clear();
                }
                let (a, b) = ((packet.dst, requester), (packet.src, qpn));
                self.peers.insert(a, b);
                self.peers.insert(b, a);
                Some([a, b])
            }
        }
    }

    /// The key of the other direction, if CM named it.
    pub(super) fn by_cm(&self, key: &Key) -> Option<Key> {
        let &(address, qpn) = self.peers.get(&(key.dst, key.dqpn))?;
        (address == key.src).then_some(Key { src: key.dst, dst: key.src, dqpn: qpn, ..*key })
    }

    pub(super) fn wait(&mut self, key: &Key, slot: u32) {
        let slots = self.waiting.entry((key.src, key.dst)).or_default();
        if slots.len() >= MAX_CANDIDATES {
            slots.pop_front();
        }
        slots.push_back(slot);
    }

    pub(super) fn stop_waiting(&mut self, key: &Key, slot: u32) {
        if let Some(slots) = self.waiting.get_mut(&(key.src, key.dst)) {
            slots.retain(|&waiting| waiting != slot);
            if slots.is_empty() {
                self.waiting.remove(&(key.src, key.dst));
            }
        }
    }

    /// Directions opposite to `key` that wait for a partner.
    pub(super) fn candidates(&self, key: &Key) -> impl Iterator<Item = u32> + '_ {
        self.waiting.get(&(key.dst, key.src)).into_iter().flatten().copied()
    }
}
