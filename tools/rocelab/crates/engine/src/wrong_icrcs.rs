// SPDX-License-Identifier: GPL-2.0-or-later
//! What the wrong ICRCs of a capture have in common, where none is right.

use std::collections::BTreeMap;

use roce::Packet;
use roce::icrc::Diagnosis;

use crate::changed_fields::{Changed, ChangedFields};

/// Fewer wrong ICRCs may be as many corrupted packets, unless they are equal where they must not be.
const MIN_COMPARED: u64 = 4;
/// Lengths whose differences are kept.
const LENGTHS: usize = 64;

/// How all ICRCs are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Common {
    /// Every packet has this one.
    Constant(u32),
    /// Packets of one length differ from the right one in the same bits: the CRC begins with another number, or
    /// ends with one.
    Seed,
    /// Nothing.
    Nothing,
}

/// Counts wrong ICRCs by diagnosis, and compares them.
#[derive(Clone, Debug)]
pub struct WrongIcrcs {
    /// Packets by diagnosis.
    pub by_diagnosis: BTreeMap<&'static str, u64>,
    corrupted: u64,
    found: Option<u32>,
    constant: bool,
    /// The first one that was expected, and whether another was.
    expected: Option<u32>,
    distinct: bool,
    /// The exclusive or of what was found and expected, by the bytes that are covered.
    differences: BTreeMap<usize, u32>,
    /// Packets whose difference was compared with that of another.
    compared: u64,
    seed: bool,
    fields: ChangedFields,
}

impl Default for WrongIcrcs {
    fn default() -> Self {
        Self {
            by_diagnosis: BTreeMap::new(),
            corrupted: 0,
            found: None,
            constant: true,
            expected: None,
            distinct: false,
            differences: BTreeMap::new(),
            compared: 0,
            seed: true,
            fields: ChangedFields::default(),
        }
    }
}

impl WrongIcrcs {
    /// Counts one, of a packet with `covered` bytes below it.
    pub(crate) fn add(&mut self, expected: u32, found: u32, covered: usize, why: Diagnosis) {
        *self.by_diagnosis.entry(why.name()).or_default() += 1;
        self.corrupted += u64::from(why == Diagnosis::Corrupted);
        self.constant &= *self.found.get_or_insert(found) == found;
        self.distinct |= *self.expected.get_or_insert(expected) != expected;
        let difference = expected ^ found;
        match self.differences.get(&covered) {
            Some(&before) => {
                self.compared += 1;
                self.seed &= before == difference;
            }
            None if self.differences.len() < LENGTHS => {
                self.differences.insert(covered, difference);
            }
            None => {}
        }
    }

    /// Looks for a field of a packet that was changed.
    pub(crate) fn try_fields(&mut self, packet: &Packet, frame: &[u8], covered: usize) {
        self.fields.add(packet, frame, covered);
    }

    /// Fields that explain all ICRCs of a direction.
    #[must_use]
    pub fn changed(&self) -> Vec<Changed> {
        self.fields.list()
    }

    /// What they have in common, if none of the capture's ICRCs is right and no known mistake explains them.
    #[must_use]
    pub fn all_wrong(&self, right: u64) -> Option<Common> {
        let constant = self.found.filter(|_| self.constant && self.distinct);
        let least = if constant.is_some() { 2 } else { MIN_COMPARED };
        if right > 0 || self.corrupted < least {
            return None;
        }
        Some(match constant {
            Some(found) => Common::Constant(found),
            _ if self.seed && self.compared >= MIN_COMPARED => Common::Seed,
            _ => Common::Nothing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(icrcs: impl Iterator<Item = (u32, u32)>, right: u64) -> Option<Common> {
        let mut wrong = WrongIcrcs::default();
        for (expected, found) in icrcs {
            wrong.add(expected, found, 40, Diagnosis::Corrupted);
        }
        wrong.all_wrong(right)
    }

    #[test]
    fn what_is_common() {
        let expected = (1..20_u32).map(|at| at.wrapping_mul(0x9e37_79b9));
        let constant = expected.clone().map(|one| (one, 0xdead_beef));
        assert_eq!(common(constant.clone(), 0), Some(Common::Constant(0xdead_beef)));
        assert_eq!(common(constant.clone(), 1), None);
        assert_eq!(common(constant.clone().take(2), 0), Some(Common::Constant(0xdead_beef)));
        assert_eq!(common(constant.take(1), 0), None);
        // the same packet again
        assert_eq!(common([(1, 2); 3].into_iter(), 0), None);
        let seed = expected.clone().map(|one| (one, one ^ 0x1234_5678));
        assert_eq!(common(seed, 0), Some(Common::Seed));
        let other = expected.map(|one| (one, one.wrapping_mul(3)));
        assert_eq!(common(other, 0), Some(Common::Nothing));
    }
}
