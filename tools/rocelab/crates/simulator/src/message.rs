// SPDX-License-Identifier: GPL-2.0-or-later
//! A message of the requester, and the PSNs that it takes.

use crate::psn::add;
use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Send,
    Write,
    Read,
    Atomic,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) psn: u32,
    pub(crate) span: u32,
    pub(crate) len: u32,
}

impl Message {
    /// A message of any kind and length, whose first PSN is `psn`.
    pub(crate) fn random(random: &mut Random, psn: u32, mtu: u32) -> Self {
        let kinds = [Kind::Send, Kind::Write, Kind::Write, Kind::Read, Kind::Atomic];
        let kind = kinds[random.below(5) as usize];
        let len = match (kind, random.below(3)) {
            (Kind::Atomic, _) => 8,
            (_, 0) => random.below(u64::from(mtu)) as u32,
            (_, 1) => mtu * random.below(6) as u32,
            _ => random.below(u64::from(mtu) * 6) as u32,
        };
        let span = if kind == Kind::Atomic { 1 } else { len.div_ceil(mtu).max(1) };
        Self { kind, psn, span, len }
    }

    pub(crate) fn end(&self) -> u32 {
        add(self.psn, self.span)
    }

    /// The PSN after those that its packet with PSN `psn` uses.
    pub(crate) fn packet_end(&self, psn: u32) -> u32 {
        if self.kind == Kind::Read { self.end() } else { add(psn, 1) }
    }

    /// Its response carries data, so that no other one replaces it.
    pub(crate) fn needs_response(&self) -> bool {
        matches!(self.kind, Kind::Read | Kind::Atomic)
    }
}
