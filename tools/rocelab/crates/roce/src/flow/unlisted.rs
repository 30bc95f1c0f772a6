// SPDX-License-Identifier: GPL-2.0-or-later
//! Connections beyond the list's limit: those that lost most time are kept for the verdict, the others summed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::connection::Connection;
use super::costs::Episode;
use super::stats::Stats;
use crate::histogram::Histogram;

/// Connections that are kept.
const MAX_KEPT: usize = 4096;

/// Connections that no list has.
#[derive(Clone, Debug, Default)]
pub struct Unlisted {
    /// How many there are.
    pub count: u64,
    /// Those in which something went wrong, by lost time and number.
    kept: BTreeMap<(u64, Reverse<u32>), Connection>,
    /// How many more of them there are, and the time that they lost.
    pub dropped: (u64, u64),
    /// All but the kept ones.
    pub sums: Sums,
}

/// How the time of connections passed, summed over those whose messages were answered.
#[derive(Clone, Debug)]
pub struct Sums {
    /// How many there are.
    pub connections: u64,
    /// How long they lasted.
    pub span_ns: u64,
    /// What went wrong meanwhile.
    pub lost_ns: u64,
    /// See [`super::Pace::idle_ns`]: the lesser one of both ends.
    pub idle_ns: u64,
    /// See [`super::Pace::waiting_ns`].
    pub waiting_ns: u64,
    /// Messages that were answered.
    pub messages: u64,
    /// Message bytes of complete messages.
    pub goodput_bytes: u64,
    /// Most messages in flight of a direction.
    pub most_messages: u32,
    /// The shortest time to an answer; `u64::MAX`: unknown.
    pub fastest_ns: u64,
    /// The median time to an answer of each direction.
    pub medians: Histogram,
    /// The longest idle time.
    pub longest_idle: Option<Episode>,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            connections: 0,
            span_ns: 0,
            lost_ns: 0,
            idle_ns: 0,
            waiting_ns: 0,
            messages: 0,
            goodput_bytes: 0,
            most_messages: 0,
            fastest_ns: u64::MAX,
            medians: Histogram::default(),
            longest_idle: None,
        }
    }
}

impl Unlisted {
    /// The connections that are kept, by number.
    #[must_use]
    pub fn kept(&self) -> Vec<&Connection> {
        let mut kept: Vec<_> = self.kept.values().collect();
        kept.sort_by_key(|one| one.id);
        kept
    }

    pub(super) fn add(&mut self, one: Connection) {
        self.count += 1;
        if !is_troubled(&one) {
            self.sums.add(&one);
            return;
        }
        self.kept.insert((lost_ns(&one), Reverse(one.id)), one);
        if self.kept.len() > MAX_KEPT {
            if let Some(((lost_ns, _), least)) = self.kept.pop_first() {
                self.sums.add(&least);
                self.dropped.0 += 1;
                self.dropped.1 = self.dropped.1.saturating_add(lost_ns);
            }
        }
    }
}

impl Sums {
    fn add(&mut self, one: &Connection) {
        let ways = || one.directions.iter().flatten().filter(|way| is_answered(way));
        let span = u64::try_from(one.last_ns.saturating_sub(one.first_ns)).unwrap_or(0);
        let Some(idle) = ways().map(|way| way.pace.idle_ns).min().filter(|_| span > 0) else {
            return;
        };
        let lost = ways().map(cost_ns).fold(0, u64::saturating_add).min(span);
        let waiting = ways().map(|way| way.pace.waiting_ns).fold(0, u64::saturating_add);
        self.connections += 1;
        self.span_ns = self.span_ns.saturating_add(span);
        self.lost_ns = self.lost_ns.saturating_add(lost);
        // both ends may wait at once
        self.idle_ns = self.idle_ns.saturating_add(idle.min(span - lost));
        self.waiting_ns = self.waiting_ns.saturating_add(waiting.min(span - lost));
        for way in ways() {
            let delayed = way.costs.as_ref().map_or(0, |costs| costs.delayed.count());
            self.messages += way.latency.count() + delayed;
            self.most_messages = self.most_messages.max(way.pace.most_messages);
            self.fastest_ns = self.fastest_ns.min(way.pace.fastest_ns);
            self.medians.add(way.latency.quantile(0.5));
            if let Some(idle) = way.pace.longest_idle {
                if self.longest_idle.is_none_or(|longest| longest.ns < idle.ns) {
                    self.longest_idle = Some(idle);
                }
            }
        }
        self.goodput_bytes +=
            one.directions.iter().flatten().map(|way| way.goodput_bytes).sum::<u64>();
    }
}

fn is_answered(way: &Stats) -> bool {
    way.pace.most_messages > 0 && way.latency.count() > 0
}

/// Whether a verdict tells of the connection.
fn is_troubled(one: &Connection) -> bool {
    one.directions.iter().flatten().any(|way| {
        let signs = [way.out_of_order, way.missed, way.cnp, way.rnr];
        way.costs.is_some() || signs.iter().chain(&way.naks).any(|&count| count > 0)
    })
}

fn lost_ns(one: &Connection) -> u64 {
    one.directions.iter().flatten().map(cost_ns).fold(0, u64::saturating_add)
}

fn cost_ns(way: &Stats) -> u64 {
    let rows = way.costs.iter().flat_map(|costs| &costs.rows);
    rows.map(|row| row.ns).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::super::connection::Endpoint;
    use super::super::costs::{Charge, Repair, Trouble};
    use super::*;
    use crate::finding::At;
    use crate::opcode::Service;
    use crate::packet::Net;

    fn connection(id: u32, lost: Option<u64>) -> Connection {
        let mut way = Stats::default();
        if let Some(ns) = lost {
            let (trouble, repair) = (Trouble::LossFar, Repair::Nak);
            let (shown, until) = (At::default(), At::default());
            way.charge(Charge { trouble, repair, sure: true, ns, messages: 1, shown, until });
        }
        let end = Endpoint { address: [0; 16], qpn: None };
        Connection {
            id,
            service: Service::Rc,
            net: Net::V2Ipv4,
            paired_by: None,
            fitting: 0,
            unfitting: 0,
            a: end,
            b: end,
            segment: crate::Segment::default(),
            outer: None,
            first_ns: 0,
            last_ns: 1,
            evicted: false,
            directions: [Some(way), None],
        }
    }

    #[test]
    fn those_that_lost_most_are_kept() {
        let mut unlisted = Unlisted::default();
        let all = MAX_KEPT as u32 + 3;
        for id in 0..all {
            unlisted.add(connection(id, Some(u64::from(id % 1000 + 1))));
            unlisted.add(connection(all + id, None));
        }
        assert_eq!(unlisted.count, 2 * u64::from(all));
        assert_eq!(unlisted.kept().len(), MAX_KEPT);
        // of equal ones, the first stay
        assert_eq!(unlisted.dropped, (3, 3));
        assert!(unlisted.kept().iter().all(|one| ![2000, 3000, 4000].contains(&one.id)));
    }
}
