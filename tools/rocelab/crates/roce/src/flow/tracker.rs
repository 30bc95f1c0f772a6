// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of live directions: looks up, pairs, evicts and reports them.

use std::collections::{HashMap, VecDeque};

use super::connection::{Connection, Endpoint};
use super::context::{Answer, Context, PauseTime};
use super::direction::{CORRUPT_HEADSTART, Captured, Flow};
use super::efficiency::Efficiency;
use super::evidence::Evidence;
use super::exchanges::{Exchange, Exchanges};
use super::flow_key::{CONNECTED, Folding, Key};
use super::message::{Message, Withdrawn};
use super::pairing::{Candidate, PairedBy, Pairing};
use super::run::Run;
use super::unlisted::Unlisted;
use super::verdict::{Verdict, Verdicts};
use crate::cm::{self, CmMessage};
use crate::finding::{At, Findings, Repeated, Rule};
use crate::icrc::Diagnosis;
use crate::opcode::{Class, Opcode, Service};
use crate::packet::{Packet, address};

/// Limits and options.
#[derive(Clone, Debug)]
pub struct Config {
    /// Live directions; beyond this, the least recently used are evicted and counted.
    pub max_live: usize,
    /// Connections listed; beyond this, [`Tracker::unlisted`] has what a verdict needs of them.
    pub max_connections: usize,
    /// Findings kept; beyond this, they are counted.
    pub max_findings: usize,
    /// Breaches of Go-Back-N are errors.
    pub go_back_n: bool,
    /// Copies of packets were dropped earlier: whatever appears twice was sent twice.
    pub without_copies: bool,
    /// No ICRC of the capture is right: its packets are not corrupted, and are followed.
    pub follow_corrupt: bool,
    /// Keep a row of each message for [`Tracker::take_messages`].
    pub keep_messages: bool,
    /// Keep the verdicts on single packets for [`Tracker::take_verdicts`].
    pub keep_verdicts: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_live: 1 << 15,
            max_connections: 1 << 14,
            max_findings: 1000,
            go_back_n: false,
            without_copies: false,
            follow_corrupt: false,
            keep_messages: false,
            keep_verdicts: false,
        }
    }
}

const RECENT: usize = 256;
/// Directions of corrupted packets that are counted at a time.
const MAX_CORRUPT: usize = 1024;
/// Pauses of the link that are kept.
const MAX_PAUSES: usize = 64;
/// Candidates for the opposite direction that a direction keeps.
const MAX_CANDIDATES: usize = 64;
/// Candidates that one search looks at.
const MAX_SEARCHED: usize = 1024;

/// Follows all connections of a capture.
#[derive(Clone, Debug)]
pub struct Tracker {
    config: Config,
    pub(super) flows: Vec<Option<Box<Flow>>>,
    free: Vec<u32>,
    pub(super) table: HashMap<Key, u32, Folding>,
    /// Corrupted packets by direction, of directions that have no other.
    corrupt: HashMap<Key, u64, Folding>,
    /// Slots of recent directions: most packets follow one of their own direction.
    pub(super) recent: [Option<(Key, u32)>; RECENT],
    /// Slots by header number, for runs.
    runs: [(u64, u32); RECENT],
    pairing: Pairing,
    exchanges: Exchanges,
    next_id: u32,
    /// Findings so far.
    pub findings: Findings,
    /// Recent times in which flow control paused the link.
    pauses: VecDeque<PauseTime>,
    /// Efficiency by message size.
    pub efficiency: Efficiency,
    /// What the connections show about the capture; complete after [`Self::finish`].
    pub evidence: Evidence,
    /// Packets with reserved bits, the first one's bits and connection, and connections with such packets.
    reserved: (Repeated, (u8, u8), Option<u32>, u64),
    messages: Vec<Message>,
    /// Messages that were complete and came to nothing; only if messages are kept.
    pub withdrawn: Vec<Withdrawn>,
    verdicts: Verdicts,
    /// Numbers of directions that got another one when their connection was known, and that one.
    pub renumbered: HashMap<u32, u32>,
    done: Vec<Connection>,
    /// Connections evicted before the end.
    pub evicted: u64,
    /// Connections beyond [`Config::max_connections`].
    pub unlisted: Unlisted,
}

impl Tracker {
    /// An empty table.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let findings = Findings::new(config.max_findings, config.go_back_n);
        let verdicts = Verdicts { keep: config.keep_verdicts, list: Vec::new() };
        Self {
            config,
            flows: Vec::new(),
            free: Vec::new(),
            table: HashMap::default(),
            corrupt: HashMap::default(),
            recent: [None; RECENT],
            runs: [(0, 0); RECENT],
            pairing: Pairing::default(),
            exchanges: Exchanges::default(),
            next_id: 0,
            findings,
            pauses: VecDeque::new(),
            efficiency: Efficiency::default(),
            evidence: Evidence::default(),
            reserved: (Repeated::default(), (0, 0), None, 0),
            messages: Vec::new(),
            withdrawn: Vec::new(),
            verdicts,
            renumbered: HashMap::default(),
            done: Vec::new(),
            evicted: 0,
            unlisted: Unlisted::default(),
        }
    }

    /// Notes that flow control asked for silence from one time to another, ns since 1970; `key` is its
    /// sender and class. Equal times end what it asked for before.
    pub fn pause(&mut self, key: u64, from_ns: i64, to_ns: i64) {
        for pause in self.pauses.iter_mut().filter(|pause| pause.key == key) {
            pause.to_ns = pause.to_ns.min(from_ns);
        }
        if to_ns <= from_ns {
            return;
        }
        if self.pauses.len() >= MAX_PAUSES {
            self.pauses.pop_front();
        }
        self.pauses.push_back(PauseTime { key, from_ns, to_ns });
    }

    /// The messages completed since the last call.
    pub fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }

    /// The verdicts on single packets since the last call.
    pub fn take_verdicts(&mut self) -> Vec<Verdict> {
        std::mem::take(&mut self.verdicts.list)
    }

    /// Follows one packet; returns the number of its connection. `headers` is a number (not 0) that
    /// packets share if one is a hit of the other in [`crate::HeaderCache`]. `diagnosis`: the ICRC is
    /// wrong.
    pub fn packet(
        &mut self,
        packet: &Packet,
        headers: u64,
        frame: &[u8],
        at: At,
        diagnosis: Option<Diagnosis>,
    ) -> Option<u32> {
        let corrupt = diagnosis == Some(Diagnosis::Corrupted) && !self.config.follow_corrupt;
        let Some(op) = packet.op() else {
            self.findings.add(Rule::OpcodeUnknown, at, None, false, || {
                format!("undefined BTH opcode {:#04x}", packet.opcode)
            });
            return None;
        };
        let captured = Captured { packet, headers, frame, op, at };
        // verdicts are wanted on packets in order too
        let short = !corrupt && !self.config.keep_verdicts;
        let (before, known) = self.runs[headers as usize % RECENT];
        if short && before == headers {
            if let Some(id) = self.in_order(known, &captured) {
                return Some(id);
            }
        }
        let key = key(packet, frame, op)?;
        let mut slot = self.slot(&key, packet, frame, at, corrupt)?;
        if short {
            if let Some(id) = self.in_order(slot, &captured) {
                self.runs[headers as usize % RECENT] = (headers, slot);
                return Some(id);
            }
        }
        let flow = self.flows.get(slot as usize)?.as_deref()?;
        if !corrupt && !op.is_response() && flow.requests.restarts(packet.psn, op) {
            let connected = op.service().is_reliable() || op.service() == Service::Uc;
            if connected {
                let id = flow.id;
                self.findings.add(Rule::QpnReuse, at, Some(id), true, || {
                    format!(
                        "PSN {} is far from the last one: another connection, or the capture lost \
                         more than {} packets",
                        packet.psn,
                        1 << 16
                    )
                });
                self.retire(slot, false);
                slot = self.slot(&key, packet, frame, at, false)?;
            }
        }
        self.follow(slot, &captured, corrupt)
    }

    /// Takes packets of a run as long as they continue the previous packet with these headers. None may
    /// have a wrong ICRC; `at` and `icrc` give the place and the ICRC of each. The result is that of
    /// [`Self::packet`], at less cost. Returns the number of packets taken.
    #[inline]
    pub fn continue_run(
        &mut self,
        run: &Run,
        at: impl Fn(usize) -> At,
        icrc: impl Fn(usize) -> u32,
    ) -> usize {
        let (before, slot) = self.runs[run.headers as usize % RECENT];
        if before != run.headers || self.learns_mtu(slot) != Some(false) {
            return 0;
        }
        self.flow(slot).map_or(0, |flow| flow.continue_run(run, at, icrc))
    }

    /// Takes a request or an ACK by the short way and returns the number of its connection; `None`:
    /// [`Self::follow`] must take it.
    #[inline]
    fn in_order(&mut self, slot: u32, captured: &Captured<'_>) -> Option<u32> {
        let acks = captured.op.class == Class::Acknowledge;
        if !acks && self.learns_mtu(slot)? {
            return None;
        }
        let mut flow = self.flows.get_mut(slot as usize)?.take()?;
        let peer_place =
            flow.peer.filter(|_| acks).and_then(|peer| self.flows.get_mut(peer as usize));
        let mut peer = peer_place.and_then(Option::take);
        let mut context = Context {
            findings: &mut self.findings,
            messages: &mut self.messages,
            keep_messages: self.config.keep_messages,
            withdrawn: &mut self.withdrawn,
            efficiency: &mut self.efficiency,
            verdicts: &mut self.verdicts,
            connection: flow.id,
            from_a: flow.from_a,
            net: captured.packet.net,
            visible: flow.peer.is_some(),
            answer: Answer::None,
            segment: captured.packet.segment.number(),
            pauses: &self.pauses,
            evidence: &mut self.evidence,
        };
        let done = match (&mut peer, acks) {
            (Some(peer), true) => flow.ack_in_order(peer, captured, &mut context),
            (None, true) => false,
            _ => flow.in_order(captured, &mut context),
        };
        let (id, peer_slot) = (flow.id, flow.peer);
        *self.flows.get_mut(slot as usize)? = Some(flow);
        if let (Some(peer), Some(peer_slot)) = (peer, peer_slot) {
            *self.flows.get_mut(peer_slot as usize)? = Some(peer);
        }
        done.then_some(id)
    }

    /// Whether the flow must first take the path MTU from the other direction.
    #[inline]
    fn learns_mtu(&self, slot: u32) -> Option<bool> {
        let flow = self.flows.get(slot as usize)?.as_deref()?;
        let (0, Some(peer)) = (flow.stats.pmtu, flow.peer) else { return Some(false) };
        Some(self.flows.get(peer as usize)?.as_deref()?.stats.pmtu != 0)
    }

    #[inline]
    fn slot(
        &mut self,
        key: &Key,
        packet: &Packet,
        frame: &[u8],
        at: At,
        corrupt: bool,
    ) -> Option<u32> {
        let place = place(key);
        if let Some((_, slot)) = self.recent[place].as_ref().filter(|(recent, _)| recent == key) {
            return Some(*slot);
        }
        if let Some(&slot) = self.table.get(key) {
            self.recent[place] = Some((*key, slot));
            return Some(slot);
        }
        // the QPN of a corrupted packet may be wrong: it makes no connection, unless it comes again and again
        if corrupt && !self.comes_again(key) {
            return None;
        }
        if self.table.len() >= self.config.max_live {
            self.evict();
        }
        let opposite = if key.sqpn == CONNECTED {
            self.pairing.by_cm(key)
        } else {
            Some(Key { src: key.dst, dst: key.src, dqpn: key.sqpn, sqpn: key.dqpn, ..*key })
        };
        let how = if key.sqpn == CONNECTED { PairedBy::Cm } else { PairedBy::Deth };
        let peer = opposite.and_then(|opposite| self.table.get(&opposite).copied());
        let mut flow =
            Box::new(Flow::new(*key, self.next_id, packet.net, packet.sport, at.time_ns));
        (flow.segment, flow.outer) = (packet.segment, packet.outer(frame));
        flow.paired_by = opposite.map(|_| how);
        flow.corrupt = if corrupt { CORRUPT_HEADSTART } else { 0 };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.flows.push(None);
                u32::try_from(self.flows.len() - 1).ok()?
            }
        };
        *self.flows.get_mut(slot as usize)? = Some(flow);
        self.table.insert(*key, slot);
        self.recent[place] = Some((*key, slot));
        match peer {
            Some(peer) => self.join(slot, peer, how),
            None => self.next_id += 1,
        }
        Some(slot)
    }

    /// Whether so many corrupted packets have this key that it must be right.
    #[cold]
    fn comes_again(&mut self, key: &Key) -> bool {
        if self.corrupt.len() >= MAX_CORRUPT && !self.corrupt.contains_key(key) {
            self.corrupt.clear();
        }
        let count = self.corrupt.entry(*key).or_default();
        *count += 1;
        if *count <= CORRUPT_HEADSTART {
            return false;
        }
        self.corrupt.remove(key);
        true
    }

    #[inline]
    fn flow(&mut self, slot: u32) -> Option<&mut Flow> {
        self.flows.get_mut(slot as usize)?.as_deref_mut()
    }

    /// Notes that the packets of `new` so far are of the connection of `old`.
    fn renumber(&mut self, new: u32, old: u32) {
        let Some(kept) = self.flow(old).map(|flow| flow.id) else { return };
        // most are known with their first packet
        if let Some(new) = self.flow(new).filter(|flow| flow.has_packets()) {
            let id = new.id;
            self.renumbered.insert(id, kept);
        }
    }

    /// Makes `new` the other direction of the connection of `old`.
    fn join(&mut self, new: u32, old: u32, how: PairedBy) {
        let Some(elder) = self.flow(old) else { return };
        if elder.peer.is_some() {
            return;
        }
        elder.peer = Some(new);
        elder.paired_by = Some(how);
        elder.candidates = None;
        let (id, from_a) = (elder.id, elder.from_a);
        self.leave_index(old);
        let Some(flow) = self.flow(new) else { return };
        flow.peer = Some(old);
        flow.paired_by = Some(how);
        flow.candidates = None;
        flow.id = id;
        flow.from_a = !from_a;
        self.leave_index(new);
    }

    fn leave_index(&mut self, slot: u32) {
        let Some(flow) = self.flows.get_mut(slot as usize).and_then(Option::as_deref_mut) else {
            return;
        };
        if let Some(indexed) = flow.indexed.take() {
            self.pairing.remove(&flow.key, slot, indexed);
        }
    }

    /// Finds the requests that a response answers.
    #[cold]
    fn pair_by_psn(&mut self, slot: u32, psn: u32) {
        let Some(flow) = self.flow(slot) else { return };
        let (key, port) = (flow.key, flow.port);
        flow.searches = flow.searches.saturating_add(1);
        let (searches, before) = (flow.searches, flow.candidates.take());
        // many candidates mean that PSNs tell little: search less and less often
        if before.is_none() && !searches.is_power_of_two() && searches > MAX_CANDIDATES as u32 {
            return;
        }
        let fits = |candidate: &&Candidate| {
            candidate.slot != slot
                && self.flows.get(candidate.slot as usize).and_then(Option::as_ref).is_some_and(
                    |other| {
                        other.peer.is_none()
                            && (other.key.src, other.key.dst) == (key.dst, key.src)
                            && other.requests.expects(psn)
                    },
                )
        };
        let same_port = |candidate: &&Candidate| port != 0 && candidate.port == port;
        let all = || {
            let indexed = before.is_none().then(|| self.pairing.candidates(&key, psn));
            before.iter().flatten().chain(indexed.into_iter().flatten())
        };
        let few = all().nth(MAX_SEARCHED).is_none();
        let mut left: Vec<Candidate> = match few {
            true => all().filter(fits).copied().collect(),
            // looking at each would take time with their square
            false => all().filter(same_port).take(MAX_SEARCHED).filter(fits).copied().collect(),
        };
        // a tap may have the tags of one direction only, and tunnels may differ by direction
        let same_segment = |candidate: &Candidate| {
            let other = self.flows.get(candidate.slot as usize).and_then(Option::as_ref);
            other.is_some_and(|other| other.key.segment == key.segment)
        };
        if left.iter().any(same_segment) {
            left.retain(same_segment);
        }
        let found = match &left[..] {
            [only] if few => Some((*only, PairedBy::Psn)),
            _ => {
                let mut same = left.iter().filter(same_port);
                match (same.next(), same.next()) {
                    (Some(only), None) => Some((*only, PairedBy::SourcePort)),
                    _ => None,
                }
            }
        };
        if let Some((found, how)) = found {
            // the connection keeps the number of the elder direction
            let elder_id = self.flow(found.slot).map(|flow| flow.id);
            let own_id = self.flow(slot).map(|flow| flow.id);
            let (new, old) =
                if elder_id <= own_id { (slot, found.slot) } else { (found.slot, slot) };
            self.renumber(new, old);
            self.join(new, old, how);
        } else if let Some(flow) = self.flow(slot) {
            flow.candidates = (few && (1..=MAX_CANDIDATES).contains(&left.len())).then_some(left);
        }
    }

    #[inline]
    fn follow(&mut self, slot: u32, captured: &Captured<'_>, corrupt: bool) -> Option<u32> {
        let &Captured { packet, frame, op, .. } = captured;
        let service = op.service();
        if service == Service::Ud {
            if let Some(message) = cm::parse(packet, frame).filter(|_| !corrupt) {
                self.manage(slot, &message, captured);
            }
        }
        let flow = self.flow(slot)?;
        let trusted = !corrupt || flow.corrupt >= flow.good + CORRUPT_HEADSTART;
        if service.is_reliable() && op.is_response() && flow.peer.is_none() && trusted {
            self.pair_by_psn(slot, packet.psn);
        }
        let mut flow = self.flows.get_mut(slot as usize)?.take()?;
        let mut peer = match flow.peer {
            Some(peer) => self.flows.get_mut(peer as usize).and_then(Option::take),
            None => None,
        };
        let id = flow.id;
        let mut context = Context {
            findings: &mut self.findings,
            messages: &mut self.messages,
            keep_messages: self.config.keep_messages,
            withdrawn: &mut self.withdrawn,
            efficiency: &mut self.efficiency,
            verdicts: &mut self.verdicts,
            connection: id,
            from_a: flow.from_a,
            net: packet.net,
            visible: peer.is_some(),
            answer: Answer::None,
            segment: flow.key.segment,
            pauses: &self.pauses,
            evidence: &mut self.evidence,
        };
        flow.packet(peer.as_deref_mut(), captured, corrupt, &mut context);
        if flow.peer.is_none() && service.is_reliable() {
            if let Some(psns) = flow.requests.answerable() {
                let candidate = Candidate { slot, port: flow.port };
                self.pairing.add(&flow.key, candidate, &mut flow.indexed, psns);
            }
        }
        let peer_slot = flow.peer;
        *self.flows.get_mut(slot as usize)? = Some(flow);
        if let (Some(peer_slot), Some(peer)) = (peer_slot, peer) {
            *self.flows.get_mut(peer_slot as usize)? = Some(peer);
        }
        Some(id)
    }

    /// Takes a message of the CM.
    #[cold]
    fn manage(&mut self, slot: u32, message: &CmMessage, captured: &Captured<'_>) {
        let &Captured { packet, at, .. } = captured;
        let connection = self.flow(slot).map(|flow| flow.id);
        let ends = (packet.src, packet.dst);
        self.exchanges.take(*message, ends, at, connection, &mut self.findings);
        if let Some([a, b]) = self.pairing.cm(packet, message) {
            self.retire_pair(a, b, packet.segment.number());
        }
    }

    /// Ends the previous connection of two QPNs that CM has connected again.
    fn retire_pair(&mut self, a: ([u8; 16], u32), b: ([u8; 16], u32), segment: u64) {
        for (to, from) in [(a, b), (b, a)] {
            let key = Key { src: from.0, dst: to.0, dqpn: to.1, sqpn: CONNECTED, segment };
            if let Some(&slot) = self.table.get(&key) {
                self.retire(slot, false);
            }
        }
    }

    /// Evicts the least recently used eighth.
    #[cold]
    fn evict(&mut self) {
        let mut ages: Vec<(i64, u32)> = (0..)
            .zip(&self.flows)
            .filter_map(|(slot, flow)| flow.as_ref().map(|flow| (flow.last_ns, slot)))
            .collect();
        let count = (ages.len() / 8).max(1).min(ages.len());
        if let Some(pivot) = count.checked_sub(1) {
            ages.select_nth_unstable(pivot);
        }
        ages.truncate(count);
        ages.sort_unstable();
        for (_, slot) in ages {
            if self.flow(slot).is_some() {
                self.evicted += 1;
                self.retire(slot, true);
            }
        }
    }

    /// Ends a connection and keeps its row.
    fn retire(&mut self, slot: u32, evicted: bool) {
        let Some(mut flow) = self.flows.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        // another direction may take the slot
        self.runs = [(0, 0); RECENT];
        let peer_slot = flow.peer;
        let mut peer =
            peer_slot.and_then(|peer| self.flows.get_mut(peer as usize)).and_then(Option::take);
        for (gone, slot) in [(Some(&flow), Some(slot)), (peer.as_ref(), peer_slot)] {
            let (Some(gone), Some(slot)) = (gone, slot) else { continue };
            if let Some(indexed) = gone.indexed {
                self.pairing.remove(&gone.key, slot, indexed);
            }
            self.table.remove(&gone.key);
            self.free.push(slot);
            self.recent[place(&gone.key)].take_if(|(recent, _)| *recent == gone.key);
        }
        if let Some(peer) = &mut peer {
            flow.constant.join(&mut peer.constant);
        }
        for (one, visible) in [(Some(&mut flow), peer.is_some()), (peer.as_mut(), true)] {
            let Some(one) = one else { continue };
            let mut context = Context {
                findings: &mut self.findings,
                messages: &mut self.messages,
                keep_messages: self.config.keep_messages,
                withdrawn: &mut self.withdrawn,
                efficiency: &mut self.efficiency,
                verdicts: &mut self.verdicts,
                connection: one.id,
                from_a: one.from_a,
                net: one.net,
                visible,
                answer: Answer::None,
                segment: one.key.segment,
                pauses: &self.pauses,
                evidence: &mut self.evidence,
            };
            one.settle(context.efficiency);
            one.constant.finish(&mut context);
            let Flow { requests, responses, stats, constant, id, .. } = &mut **one;
            if constant.reserved.count > 0 {
                let (all, bits, connection, connections) = &mut self.reserved;
                if all.count == 0 || constant.reserved.first.time_ns < all.first.time_ns {
                    (*bits, all.first) = (constant.reserved_bits, constant.reserved.first);
                    *connection = Some(*id);
                }
                all.count += constant.reserved.count;
                *connections += 1;
            }
            requests.finish(stats, &mut context);
            responses.finish(stats);
        }
        if let Some(peer) = &peer {
            migreq([&flow, peer], &mut self.findings);
            for (cnps, marked) in [(&flow, peer), (peer, &flow)] {
                if cnps.stats.cnp > 0 && marked.stats.ecn[3] == 0 {
                    let at = At { time_ns: cnps.last_ns, ..At::default() };
                    self.findings.add(Rule::CnpWithoutCe, at, Some(flow.id), true, || {
                        format!(
                            "{} CNP(s), but no CE-marked packet the other way: marked after the \
                             capture point, or sent without cause",
                            cnps.stats.cnp
                        )
                    });
                }
            }
        }
        let row = row(*flow, peer.map(|peer| *peer), evicted);
        self.exchanges.note(&row);
        if self.done.len() >= self.config.max_connections {
            self.unlisted.add(row);
        } else {
            self.done.push(row);
        }
    }

    /// Ends all connections; returns them by number.
    pub fn finish(&mut self) -> Vec<Connection> {
        let mut order: Vec<(u32, u32)> = (0..)
            .zip(&self.flows)
            .filter_map(|(slot, flow)| flow.as_ref().map(|flow| (flow.id, slot)))
            .collect();
        order.sort_unstable();
        for (_, slot) in order {
            self.retire(slot, false);
        }
        let mut done = std::mem::take(&mut self.done);
        done.sort_by_key(|connection| connection.id);
        self.exchanges.finish(&mut self.findings);
        self.judge_capture();
        let kept = |id: u32| self.renumbered.get(&id).copied().unwrap_or(id);
        for finding in &mut self.findings.list {
            finding.connection = finding.connection.map(kept);
        }
        for message in &mut self.withdrawn {
            message.connection = kept(message.connection);
        }
        done
    }

    /// Gives messages the numbers of their connections, which were not known when they ended.
    pub fn renumber_messages(&self, messages: &mut [Message]) {
        for message in messages {
            if let Some(&kept) = self.renumbered.get(&message.connection) {
                (message.connection, message.from_a) = (kept, false);
            }
        }
    }

    /// How connections were set up and ended, in the order of their first messages, and how many more there
    /// were; complete after [`Self::finish`].
    #[must_use]
    pub fn exchanges(&self) -> (&[Exchange], u64) {
        (&self.exchanges.list, self.exchanges.unreported)
    }
}

impl Tracker {
    /// Judges what only the capture as a whole shows.
    fn judge_capture(&mut self) {
        let (reserved, (qp, psn), connection, directions) = std::mem::take(&mut self.reserved);
        self.findings.add_repeated(Rule::BthReserved, reserved, connection, false, || {
            format!(
                "reserved bits are set in {} packet(s) of {directions} direction(s), first {qp:#04x} \
                 before the QP, {psn:#04x} before the PSN",
                reserved.count
            )
        });
        let doubled = !self.evidence.looks().is_empty() && !self.config.without_copies;
        // packets in fragments look like lost ones
        let partial = self.evidence.fragmented > 0 || self.evidence.sampled().is_some();
        if doubled || partial {
            self.findings.retract(Rule::needs_all_packets);
        }
        self.findings.sort();
    }
}

/// One end sets MigReq in all packets, and the other in none.
fn migreq(both: [&Flow; 2], findings: &mut Findings) {
    let [Some(one), Some(other)] = both.map(|flow| flow.constant.migreq()) else { return };
    if one.0 == other.0 {
        return;
    }
    let [clears, sets] = if one.0 { [both[1], both[0]] } else { both };
    let at = if one.0 { other.1 } else { one.1 };
    findings.add(Rule::MigReq, at, Some(clears.id), false, || {
        let [clears, sets] = [clears, sets].map(|flow| address(flow.key.src));
        format!(
            "{clears} never sets MigReq and {sets} always does: some adapters handle packets without it \
             slowly, or drop them"
        )
    });
}

fn row(flow: Flow, peer: Option<Flow>, evicted: bool) -> Connection {
    let (a, b) = match peer {
        Some(peer) if peer.from_a => (peer, Some(flow)),
        peer => (flow, peer),
    };
    let known = |qpn: u32| (qpn != CONNECTED).then_some(qpn);
    let a_qpn = b.as_ref().map(|b| b.key.dqpn).or_else(|| known(a.key.sqpn));
    let service = a.service.or_else(|| b.as_ref().and_then(|b| b.service));
    Connection {
        id: a.id,
        service: service.unwrap_or(Service::Cnp),
        net: a.net,
        paired_by: b.as_ref().and(a.paired_by),
        fitting: a.fitting + b.as_ref().map_or(0, |b| b.fitting),
        unfitting: a.unfitting + b.as_ref().map_or(0, |b| b.unfitting),
        a: Endpoint { address: a.key.src, qpn: a_qpn },
        b: Endpoint { address: a.key.dst, qpn: Some(a.key.dqpn) },
        segment: a.segment,
        outer: a.outer,
        first_ns: b.as_ref().map_or(a.first_ns, |b| a.first_ns.min(b.first_ns)),
        last_ns: b.as_ref().map_or(a.last_ns, |b| a.last_ns.max(b.last_ns)),
        evicted,
        directions: [Some(a.stats), b.map(|b| b.stats)],
    }
}

/// The index of a key in [`Tracker::recent`]. The two directions of a connection differ in most bits.
#[inline]
pub(super) const fn place(key: &Key) -> usize {
    let qpn = key.dqpn ^ key.dqpn >> 8;
    (qpn as usize ^ key.src[15] as usize) % RECENT
}

#[inline]
fn key(packet: &Packet, frame: &[u8], op: &Opcode) -> Option<Key> {
    let sqpn = match op.service() {
        Service::Ud => packet.deth(frame)?.src_qp,
        _ => CONNECTED,
    };
    let segment = packet.segment.number();
    Some(Key { src: packet.src, dst: packet.dst, dqpn: packet.dqpn, sqpn, segment })
}
