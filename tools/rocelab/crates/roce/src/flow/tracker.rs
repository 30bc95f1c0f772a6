// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of live directions: finds a packet's direction, pairs, evicts, and reports.

use std::collections::HashMap;

use super::context::Context;
use super::key::{CONNECTED, Folding, Key};
use super::message::{Efficiency, Message};
use super::pair::{PairedBy, Pairing};
use super::report::{Connection, Endpoint};
use super::requests::{Acked, Request, Requests};
use super::responses::{Response, Responses};
use super::stats::Stats;
use super::wellformed::{self, Constant};
use crate::cm;
use crate::finding::{At, Findings, Rule};
use crate::icrc::{self, Diagnosis};
use crate::opcode::{Class, Opcode, Service};
use crate::packet::{NAK_NAMES, Net, Packet, Syndrome, rnr_delay_ns};

/// Limits and choices.
#[derive(Clone, Debug)]
pub struct Config {
    /// Live directions; beyond, the least recently used are dropped and counted.
    pub max_live: usize,
    /// Connections reported; beyond, they are counted.
    pub max_connections: usize,
    /// Findings kept; beyond, they are counted.
    pub max_findings: usize,
    /// Hold Go-Back-N rules against selective repeat.
    pub go_back_n: bool,
    /// Keep a row of each message for [`Tracker::take_messages`].
    pub keep_messages: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_live: 1 << 15,
            max_connections: 1 << 12,
            max_findings: 1000,
            go_back_n: false,
            keep_messages: false,
        }
    }
}

/// Corrupted packets tolerated before they are followed all the same (a wrong ICRC by habit).
const CORRUPT_HEADSTART: u64 = 8;

#[derive(Debug)]
struct Flow {
    key: Key,
    id: u32,
    from_a: bool,
    net: Net,
    service: Option<Service>,
    peer: Option<u32>,
    paired_by: Option<PairedBy>,
    fitting: u64,
    unfitting: u64,
    /// Opposite directions that all responses so far may belong to.
    candidates: Option<Vec<u32>>,
    waits: bool,
    first_ns: i64,
    last_ns: i64,
    good: u64,
    corrupt: u64,
    stats: Stats,
    constant: Constant,
    requests: Requests,
    responses: Responses,
}

/// A packet, its frame, its row of the opcode table, and its place.
struct Captured<'a> {
    packet: &'a Packet,
    frame: &'a [u8],
    op: &'static Opcode,
    at: At,
}

/// Follows all connections of a capture.
#[derive(Debug)]
pub struct Tracker {
    config: Config,
    flows: Vec<Option<Box<Flow>>>,
    free: Vec<u32>,
    table: HashMap<Key, u32, Folding>,
    /// The slot of the last packet: most packets follow one of their own direction.
    recent: Option<(Key, u32)>,
    pairing: Pairing,
    next_id: u32,
    /// What was found so far.
    pub findings: Findings,
    /// Efficiency by message size.
    pub efficiency: Efficiency,
    messages: Vec<Message>,
    done: Vec<Connection>,
    /// Connections dropped from memory before the end.
    pub evicted: u64,
    /// Connections beyond [`Config::max_connections`].
    pub unreported: u64,
}

impl Tracker {
    /// An empty table.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let findings = Findings::new(config.max_findings, config.go_back_n);
        Self {
            config,
            flows: Vec::new(),
            free: Vec::new(),
            table: HashMap::default(),
            recent: None,
            pairing: Pairing::default(),
            next_id: 0,
            findings,
            efficiency: Efficiency::default(),
            messages: Vec::new(),
            done: Vec::new(),
            evicted: 0,
            unreported: 0,
        }
    }

    /// The messages completed since the last call.
    pub fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }

    /// Follow one packet; gives its connection's number. `diagnosis`: its ICRC is wrong.
    pub fn packet(
        &mut self,
        packet: &Packet,
        frame: &[u8],
        at: At,
        diagnosis: Option<Diagnosis>,
    ) -> Option<u32> {
        let Some(op) = packet.op() else {
            self.findings.add(Rule::OpcodeUnknown, at, None, false, || {
                format!("BTH opcode {:#04x} is not the specification's", packet.opcode)
            });
            return None;
        };
        let key = key(packet, frame, op)?;
        let corrupt = diagnosis == Some(Diagnosis::Corrupted);
        let mut slot = self.slot(&key, packet, at, corrupt)?;
        let flow = self.flows.get(slot as usize)?.as_ref()?;
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
                slot = self.slot(&key, packet, at, false)?;
            }
        }
        self.follow(slot, &Captured { packet, frame, op, at }, corrupt)
    }

    fn slot(&mut self, key: &Key, packet: &Packet, at: At, corrupt: bool) -> Option<u32> {
        if let Some((_, slot)) = self.recent.as_ref().filter(|(recent, _)| recent == key) {
            return Some(*slot);
        }
        if let Some(&slot) = self.table.get(key) {
            self.recent = Some((*key, slot));
            return Some(slot);
        }
        // the QP number of a corrupted packet may be wrong: it makes no connection
        if corrupt {
            return None;
        }
        if self.table.len() >= self.config.max_live {
            self.evict();
        }
        let opposite = if key.sqpn == CONNECTED {
            self.pairing.by_cm(key)
        } else {
            Some(Key { src: key.dst, dst: key.src, dqpn: key.sqpn, sqpn: key.dqpn })
        };
        let how = if key.sqpn == CONNECTED { PairedBy::Cm } else { PairedBy::Deth };
        let peer = opposite.and_then(|opposite| self.table.get(&opposite).copied());
        let flow = Box::new(Flow {
            key: *key,
            id: self.next_id,
            from_a: true,
            net: packet.net,
            service: None,
            peer: None,
            paired_by: opposite.map(|_| how),
            fitting: 0,
            unfitting: 0,
            candidates: None,
            waits: false,
            first_ns: at.time_ns,
            last_ns: at.time_ns,
            good: 0,
            corrupt: 0,
            stats: Stats::default(),
            constant: Constant::default(),
            requests: Requests::default(),
            responses: Responses::default(),
        });
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.flows.push(None);
                u32::try_from(self.flows.len() - 1).ok()?
            }
        };
        *self.flows.get_mut(slot as usize)? = Some(flow);
        self.table.insert(*key, slot);
        self.recent = Some((*key, slot));
        match peer {
            Some(peer) => self.join(slot, peer, how),
            None => self.next_id += 1,
        }
        Some(slot)
    }

    fn flow(&mut self, slot: u32) -> Option<&mut Flow> {
        self.flows.get_mut(slot as usize)?.as_deref_mut()
    }

    /// Make `new` the other direction of `old`'s connection.
    fn join(&mut self, new: u32, old: u32, how: PairedBy) {
        let Some(elder) = self.flow(old) else { return };
        if elder.peer.is_some() {
            return;
        }
        elder.peer = Some(new);
        elder.paired_by = Some(how);
        elder.candidates = None;
        let (id, from_a, waited, key) = (elder.id, elder.from_a, elder.waits, elder.key);
        elder.waits = false;
        if waited {
            self.pairing.stop_waiting(&key, old);
        }
        let Some(flow) = self.flow(new) else { return };
        flow.peer = Some(old);
        flow.paired_by = Some(how);
        flow.candidates = None;
        flow.id = id;
        flow.from_a = !from_a;
        let (waited, key) = (flow.waits, flow.key);
        flow.waits = false;
        if waited {
            self.pairing.stop_waiting(&key, new);
        }
    }

    /// Find the requests that a response answers.
    #[cold]
    fn pair_by_psn(&mut self, slot: u32, psn: u32) {
        let Some(flow) = self.flows.get(slot as usize).and_then(Option::as_ref) else { return };
        let key = flow.key;
        let fits = |&candidate: &u32| {
            candidate != slot
                && self.flows.get(candidate as usize).and_then(Option::as_ref).is_some_and(
                    |other| {
                        other.peer.is_none()
                            && (other.key.src, other.key.dst) == (key.dst, key.src)
                            && other.requests.expects(psn)
                    },
                )
        };
        let left: Vec<u32> = match &flow.candidates {
            Some(before) => before.iter().copied().filter(fits).collect(),
            None => self.pairing.candidates(&key).filter(fits).collect(),
        };
        if let [only] = left[..] {
            // the elder direction gives the connection its number
            let elder_id = self.flow(only).map(|flow| flow.id);
            let own_id = self.flow(slot).map(|flow| flow.id);
            let (new, old) = if elder_id <= own_id { (slot, only) } else { (only, slot) };
            self.join(new, old, PairedBy::Psn);
        } else if let Some(flow) = self.flow(slot) {
            flow.candidates = (!left.is_empty()).then_some(left);
        }
    }

    #[inline]
    fn follow(&mut self, slot: u32, captured: &Captured<'_>, corrupt: bool) -> Option<u32> {
        let &Captured { packet, frame, op, .. } = captured;
        let service = op.service();
        if service == Service::Ud {
            if let Some([a, b]) = cm::parse(packet, frame).and_then(|m| self.pairing.cm(packet, m))
            {
                self.forget(a, b);
            }
        }
        let paired = self.flow(slot)?.peer.is_some();
        if service.is_reliable() && op.is_response() && !paired && !corrupt {
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
            efficiency: &mut self.efficiency,
            connection: id,
            from_a: flow.from_a,
            net: packet.net,
            visible: peer.is_some(),
            response_gap: None,
        };
        flow.packet(peer.as_deref_mut(), captured, corrupt, &mut context);
        let must_wait =
            flow.peer.is_none() && !flow.waits && service.is_reliable() && flow.requests.started();
        if must_wait {
            flow.waits = true;
            self.pairing.wait(&flow.key, slot);
        }
        let peer_slot = flow.peer;
        *self.flows.get_mut(slot as usize)? = Some(flow);
        if let (Some(peer_slot), Some(peer)) = (peer_slot, peer) {
            *self.flows.get_mut(peer_slot as usize)? = Some(peer);
        }
        Some(id)
    }

    /// CM made a new connection of two QPs: what their numbers meant before is over.
    fn forget(&mut self, a: ([u8; 16], u32), b: ([u8; 16], u32)) {
        for (to, from) in [(a, b), (b, a)] {
            let key = Key { src: from.0, dst: to.0, dqpn: to.1, sqpn: CONNECTED };
            if let Some(&slot) = self.table.get(&key) {
                self.retire(slot, false);
            }
        }
    }

    /// Drop the least recently used eighth.
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
        for &(_, slot) in ages.iter().take(count) {
            if self.flow(slot).is_some() {
                self.evicted += 1;
                self.retire(slot, true);
            }
        }
    }

    /// End a connection and keep its row.
    fn retire(&mut self, slot: u32, evicted: bool) {
        let Some(mut flow) = self.flows.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        let peer_slot = flow.peer;
        let mut peer =
            peer_slot.and_then(|peer| self.flows.get_mut(peer as usize)).and_then(Option::take);
        for (gone, slot) in [(Some(&flow), Some(slot)), (peer.as_ref(), peer_slot)] {
            let (Some(gone), Some(slot)) = (gone, slot) else { continue };
            if gone.waits {
                self.pairing.stop_waiting(&gone.key, slot);
            }
            self.table.remove(&gone.key);
            self.free.push(slot);
        }
        self.recent = None;
        for (one, visible) in [(Some(&mut flow), peer.is_some()), (peer.as_mut(), true)] {
            let Some(one) = one else { continue };
            let mut context = Context {
                findings: &mut self.findings,
                messages: &mut self.messages,
                keep_messages: self.config.keep_messages,
                efficiency: &mut self.efficiency,
                connection: one.id,
                from_a: one.from_a,
                net: one.net,
                visible,
                response_gap: None,
            };
            let Flow { requests, responses, stats, .. } = &mut **one;
            requests.finish(stats, &mut context);
            responses.finish(stats);
        }
        if let Some(peer) = &peer {
            for (cnps, marked) in [(&flow, peer), (peer, &flow)] {
                if cnps.stats.cnp > 0 && marked.stats.ecn[3] == 0 {
                    let at = At { time_ns: cnps.last_ns, ..At::default() };
                    self.findings.add(Rule::CnpWithoutCe, at, Some(flow.id), true, || {
                        format!(
                            "{} CNP(s), but no packet with CE the other way: marked behind the \
                             capture point, or sent without cause",
                            cnps.stats.cnp
                        )
                    });
                }
            }
        }
        if self.done.len() >= self.config.max_connections {
            self.unreported += 1;
        } else {
            self.done.push(row(*flow, peer.map(|peer| *peer), evicted));
        }
    }

    /// End all connections; gives them by number.
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
        done
    }
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
        first_ns: b.as_ref().map_or(a.first_ns, |b| a.first_ns.min(b.first_ns)),
        last_ns: b.as_ref().map_or(a.last_ns, |b| a.last_ns.max(b.last_ns)),
        evicted,
        directions: [Some(a.stats), b.map(|b| b.stats)],
    }
}

#[inline]
fn key(packet: &Packet, frame: &[u8], op: &Opcode) -> Option<Key> {
    let sqpn = match op.service() {
        Service::Ud => packet.deth(frame)?.src_qp,
        _ => CONNECTED,
    };
    Some(Key { src: packet.src, dst: packet.dst, dqpn: packet.dqpn, sqpn })
}

impl Flow {
    #[inline]
    fn packet(
        &mut self,
        peer: Option<&mut Self>,
        captured: &Captured<'_>,
        corrupt: bool,
        context: &mut Context<'_>,
    ) {
        let &Captured { packet, frame, op, at } = captured;
        self.last_ns = self.last_ns.max(at.time_ns);
        self.stats.count(packet, at.time_ns, op.is_data());
        if corrupt {
            self.corrupt += 1;
            if self.corrupt <= self.good + CORRUPT_HEADSTART {
                self.requests.note_corrupt(packet.psn, at);
                return;
            }
        } else {
            self.good += 1;
        }
        if op.class == Class::Congestion {
            self.stats.count_cnp(at.time_ns);
            wellformed::cnp(packet, frame, at, context);
            return;
        }
        self.service = Some(op.service());
        self.constant.check(packet, op, at, &mut self.stats, context);
        match op.service() {
            Service::Rc | Service::Xrc if op.is_response() => {
                self.response(peer, captured, context);
            }
            Service::Rc | Service::Xrc | Service::Uc => {
                if let Some(peer) = peer {
                    context.response_gap = peer.responses.gap();
                    if self.stats.pmtu == 0 {
                        self.stats.pmtu = peer.stats.pmtu;
                    }
                }
                let request = Request {
                    psn: packet.psn,
                    op,
                    bytes: packet.payload_len,
                    wire: packet.wire_len,
                    reth: packet.reth(frame),
                    icrc: icrc::found(packet, frame).unwrap_or(0),
                    at,
                    reliable: op.service().is_reliable(),
                };
                self.requests.packet(&request, &mut self.stats, context);
            }
            Service::Ud => {
                self.stats.messages += 1;
                self.stats.goodput_bytes += u64::from(packet.payload_len);
            }
            Service::Rd | Service::Cnp | Service::Other => {}
        }
    }

    fn response(
        &mut self,
        peer: Option<&mut Self>,
        captured: &Captured<'_>,
        context: &mut Context<'_>,
    ) {
        let &Captured { packet, frame, op, at } = captured;
        let aeth = packet.aeth(frame);
        let syndrome = aeth.map(crate::packet::Aeth::kind);
        self.count_syndrome(packet.psn, op, syndrome, at, context);
        let psn = packet.psn;
        let response = Response { psn, op, bytes: packet.payload_len, wire: packet.wire_len, at };
        let Some(peer) = peer else {
            if op.class == Class::ReadResponse {
                self.responses.packet(&response, None, &mut self.stats, context);
            }
            return;
        };
        if peer.requests.started() {
            // an answer given again, to something answered before, says nothing
            if peer.requests.expects(psn) {
                self.fitting += 1;
            } else if peer.requests.unknown(psn) {
                self.unfitting += 1;
            }
        }
        if self.stats.pmtu > 0 && peer.stats.pmtu == 0 {
            peer.stats.pmtu = self.stats.pmtu;
            peer.requests.learn_mtu(self.stats.pmtu);
        }
        // from here on, what is learned is about the requests
        let from_a = std::mem::replace(&mut context.from_a, peer.from_a);
        let Flow { requests, stats, .. } = peer;
        let mut acked = Acked::default();
        match syndrome {
            Some(Syndrome::Nak { code: 0 }) => requests.nak(psn, at, stats, context),
            Some(Syndrome::Nak { .. }) => {}
            Some(Syndrome::Rnr { timer }) => {
                requests.rnr(psn, rnr_delay_ns(timer), at, stats, context);
            }
            Some(Syndrome::Ack { .. } | Syndrome::Reserved) | None => {
                acked = requests.acknowledge(psn, at, stats, context);
            }
        }
        let read = requests.read_at(psn);
        context.from_a = from_a;
        self.responses.note_acked(acked);
        self.stats.acked_messages += u64::from(acked.messages);
        if op.class == Class::ReadResponse {
            self.responses.packet(&response, read, &mut self.stats, context);
        }
        if let (Class::Acknowledge, Some(aeth)) = (op.class, aeth) {
            if acked.regress {
                context.find(Rule::AckRegress, at, true, || {
                    format!("acknowledges PSN {psn}, less than an ACK before it: late, or wrong")
                });
            }
            if acked.advanced {
                self.responses.check_msn(aeth.msn, at, context);
            }
        }
    }

    fn count_syndrome(
        &mut self,
        psn: u32,
        op: &Opcode,
        syndrome: Option<Syndrome>,
        at: At,
        context: &mut Context<'_>,
    ) {
        let stats = &mut self.stats;
        match syndrome {
            Some(Syndrome::Ack { credit }) => {
                stats.acks += u64::from(op.class == Class::Acknowledge);
                let (min, max) = stats.credits.unwrap_or((credit, credit));
                stats.credits = Some((min.min(credit), max.max(credit)));
            }
            Some(Syndrome::Rnr { timer }) => {
                let ns = rnr_delay_ns(timer);
                stats.rnr += 1;
                let (min, max) = stats.rnr_timer_ns.unwrap_or((ns, ns));
                stats.rnr_timer_ns = Some((min.min(ns), max.max(ns)));
                context.find(Rule::Rnr, at, false, || {
                    format!("receiver not ready for PSN {psn}; it asks to wait {ns} ns")
                });
            }
            Some(Syndrome::Nak { code }) => {
                let index = usize::from(code).min(NAK_NAMES.len() - 1);
                stats.naks[index] += 1;
                if code != 0 {
                    context.find(Rule::Nak, at, false, || {
                        format!("NAK for PSN {psn}: {}", NAK_NAMES[index])
                    });
                }
            }
            Some(Syndrome::Reserved) | None => {}
        }
    }
}
