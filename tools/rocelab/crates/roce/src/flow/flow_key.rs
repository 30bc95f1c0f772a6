// SPDX-License-Identifier: GPL-2.0-or-later
//! The key of a direction, and a hash whose collisions a capture cannot choose.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};

/// One direction: source address, destination address and destination QP, in a network; for datagrams
/// also the source QP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) src: [u8; 16],
    pub(super) dst: [u8; 16],
    pub(super) dqpn: u32,
    /// Source QP of a datagram, otherwise [`CONNECTED`].
    pub(super) sqpn: u32,
    /// [`crate::Segment::number`]: VLANs and tunnel.
    pub(super) segment: u64,
}

/// Not a 24-bit number.
pub(super) const CONNECTED: u32 = u32::MAX;

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(u128::from_ne_bytes(self.src));
        state.write_u128(u128::from_ne_bytes(self.dst));
        state.write_u64(u64::from(self.dqpn) << 32 | u64::from(self.sqpn));
        state.write_u64(self.segment);
    }
}

/// Folded multiplication with secret factors: a few cycles per word, where SipHash takes dozens.
#[derive(Clone)]
pub(super) struct Folding {
    seed: [u64; 2],
}

impl Default for Folding {
    fn default() -> Self {
        let random = RandomState::new();
        Self { seed: [random.hash_one(1) | 1, random.hash_one(2) | 1] }
    }
}

impl BuildHasher for Folding {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded { state: self.seed[0], factor: self.seed[1] }
    }
}

pub(super) struct Folded {
    state: u64,
    factor: u64,
}

impl Hasher for Folded {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        self.state = (product as u64) ^ (product >> 64) as u64;
    }

    #[inline]
    fn write_u128(&mut self, words: u128) {
        self.write_u64(words as u64);
        self.state = self.state.rotate_left(23);
        self.write_u64((words >> 64) as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}
