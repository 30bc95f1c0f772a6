// SPDX-License-Identifier: GPL-2.0-or-later
//! Header fields that were changed after the ICRCs were made, where that explains those of a direction.

use std::collections::BTreeMap;

use roce::icrc::Field;
use roce::{Net, Packet};

/// Packets of which the fields are tried: each costs as much as a thousand others.
const TRIED: u32 = 256;
/// Directions that are compared.
const DIRECTIONS: usize = 16;
/// Packets that must agree, of different lengths: with one length every address explains every ICRC.
const MIN_PACKETS: u32 = 2;

/// A field, and its value when the ICRCs were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The field.
    pub field: Field,
    /// What it was.
    pub was: u32,
    /// Source of the packets now.
    pub src: [u8; 16],
    /// Destination of the packets now.
    pub dst: [u8; 16],
    /// Their encapsulation.
    pub net: Net,
}

/// What the packets of a direction have in common.
#[derive(Clone, Debug)]
struct Direction {
    net: Net,
    packets: u32,
    /// The covered bytes of the first packet, and whether others have more or less.
    covered: usize,
    lengths_differ: bool,
    /// The value that each field had; `None`: they do not agree.
    was: [Option<u32>; Field::ALL.len()],
}

/// Tries the fields of the first packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedFields {
    tried: u32,
    directions: BTreeMap<([u8; 16], [u8; 16]), Direction>,
}

impl ChangedFields {
    pub(crate) fn add(&mut self, packet: &Packet, frame: &[u8], covered: usize) {
        let key = (packet.src, packet.dst);
        let full = self.directions.len() >= DIRECTIONS && !self.directions.contains_key(&key);
        if self.tried >= TRIED || full {
            return;
        }
        self.tried += 1;
        let was = Field::ALL.map(|field| field.before(packet, frame));
        let net = packet.net;
        let new = Direction { net, packets: 0, covered, lengths_differ: false, was };
        let one = self.directions.entry(key).or_insert(new);
        one.packets += 1;
        one.lengths_differ |= one.covered != covered;
        for (known, was) in one.was.iter_mut().zip(was) {
            *known = known.filter(|known| Some(*known) == was);
        }
    }

    /// The field of each direction that explains all its packets. Whatever changed in a short field can be
    /// expressed as a change of an address, and one address as the other: a short field comes first, and of
    /// addresses only one that another direction has too, or that is private.
    pub(crate) fn list(&self) -> Vec<Changed> {
        let decided = |one: &&Direction| one.packets >= MIN_PACKETS && one.lengths_differ;
        let explained = self.directions.iter().filter_map(|(&(src, dst), one)| {
            let known = Some(one).filter(decided)?.known();
            let others = self.directions.iter().filter(|&(key, _)| *key != (src, dst));
            let elsewhere: Vec<u32> = others
                .filter(|(_, other)| decided(other))
                .flat_map(|(_, other)| other.known())
                .filter(|(field, _)| field.is_address())
                .map(|(_, was)| was)
                .collect();
            let (field, was) = known.into_iter().find(|&(field, was)| {
                let plausible = elsewhere.contains(&was) || is_private(was);
                !field.is_address() || plausible && one.net == Net::V2Ipv4
            })?;
            Some(Changed { field, was, src, dst, net: one.net })
        });
        explained.collect()
    }
}

impl Direction {
    /// The fields that explain all packets, and what they were.
    fn known(&self) -> Vec<(Field, u32)> {
        let fields = Field::ALL.into_iter().zip(self.was);
        fields.filter_map(|(field, was)| was.map(|was| (field, was))).collect()
    }
}

/// Whether an IPv4 address is for private networks (RFC 1918, RFC 6598).
const fn is_private(address: u32) -> bool {
    matches!(address >> 24, 10)
        || matches!(address >> 20, 0xac1)
        || matches!(address >> 16, 0xc0a8)
        || matches!(address >> 22, 0x191)
}
