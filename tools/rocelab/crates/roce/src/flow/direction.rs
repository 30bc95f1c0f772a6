// SPDX-License-Identifier: GPL-2.0-or-later
//! One direction of a connection: the packets of one side, judged for both sides.

use super::assembly::{belongs, complete};
use super::context::Context;
use super::efficiency::Efficiency;
use super::flow_key::Key;
use super::message::Message;
use super::pairing::{Candidate, Indexed, PairedBy};
use super::requests::{Acked, Request, Requests};
use super::responses::{Response, Responses};
use super::run::{Run, RunSums};
use super::stats::Stats;
use super::verdict::{PsnStatus, Verdict};
use super::wellformed::{self, Constant};
use crate::Segment;
use crate::finding::{At, Rule};
use crate::icrc;
use crate::opcode::{Class, Opcode, Position, Service};
use crate::packet::{Aeth, NAK_NAMES, Net, Packet, Syndrome, rnr_delay_ns};

/// A sender with more corrupted packets than good ones by this many computes wrong ICRCs: its packets
/// are followed nevertheless.
pub(super) const CORRUPT_HEADSTART: u64 = 8;

/// What each packet needs comes first: of thousands of directions, most are in no cache.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Flow {
    pub(super) id: u32,
    pub(super) peer: Option<u32>,
    pub(super) service: Option<Service>,
    pub(super) from_a: bool,
    pub(super) last_ns: i64,
    pub(super) good: u64,
    pub(super) fitting: u64,
    /// Where the index of unpaired directions has this one.
    pub(super) indexed: Option<Indexed>,
    /// The current run, not yet in the statistics.
    run_sums: Option<RunSums>,
    pub(super) constant: Constant,
    pub(super) stats: Stats,
    pub(super) requests: Requests,
    pub(super) responses: Responses,
    pub(super) key: Key,
    pub(super) net: Net,
    pub(super) segment: Segment,
    /// The ends of the outermost tunnel of the first packet.
    pub(super) outer: Option<([u8; 16], [u8; 16])>,
    pub(super) paired_by: Option<PairedBy>,
    pub(super) unfitting: u64,
    /// Opposite directions that all responses so far may belong to.
    pub(super) candidates: Option<Vec<Candidate>>,
    /// Searches for the opposite direction so far.
    pub(super) searches: u32,
    /// UDP source port of the first packet.
    pub(super) port: u16,
    pub(super) first_ns: i64,
    pub(super) corrupt: u64,
}

/// A packet with its frame, its row of the opcode table, and its place in the capture.
pub(super) struct Captured<'a> {
    pub(super) packet: &'a Packet,
    /// Its header number, see [`super::Tracker::packet`].
    pub(super) headers: u64,
    pub(super) frame: &'a [u8],
    pub(super) op: &'static Opcode,
    pub(super) at: At,
}

impl Flow {
    pub(super) fn has_packets(&self) -> bool {
        self.stats.packets > 0 || self.run_sums.is_some()
    }

    pub(super) fn new(key: Key, id: u32, net: Net, port: u16, time_ns: i64) -> Self {
        Self {
            key,
            id,
            from_a: true,
            net,
            segment: Segment::default(),
            outer: None,
            service: None,
            peer: None,
            paired_by: None,
            fitting: 0,
            unfitting: 0,
            candidates: None,
            searches: 0,
            indexed: None,
            port,
            first_ns: time_ns,
            last_ns: time_ns,
            good: 0,
            corrupt: 0,
            stats: Stats::default(),
            constant: Constant::default(),
            requests: Requests::default(),
            responses: Responses::default(),
            run_sums: None,
        }
    }

    /// Takes the packets that continue the current run, as [`Self::in_order`] would, at less cost.
    /// Returns their number.
    #[inline]
    pub(super) fn continue_run(
        &mut self,
        run: &Run,
        at: impl Fn(usize) -> At,
        icrc: impl Fn(usize) -> u32,
    ) -> usize {
        let findable = self.findable(run.psn);
        let Self { run_sums: Some(run_sums), stats, requests, .. } = self else { return 0 };
        let possible = if run_sums.reliable { run.count.min(findable) } else { run.count };
        let continues = possible > 0
            && run_sums.headers == run.headers
            && requests.next() == run.psn
            && run_sums.pmtu == stats.pmtu
            && requests.is_idle(stats.pmtu);
        if !continues {
            return 0;
        }
        let time_ns = |index| at(index).time_ns;
        let is_current = |&index: &usize| stats.series.is_current(time_ns(index));
        let all = run.in_time && is_current(&0) && is_current(&(possible - 1));
        let count = match all {
            true => possible,
            false => (0..possible).take_while(is_current).count(),
        };
        let Some(last) = count.checked_sub(1) else { return 0 };
        if requests.is_answered() && stats.pace.note_idle(self.last_ns, time_ns(0)).is_some() {
            // the long way tells why
            return 0;
        }
        let last_index = last as u32;
        let latest_ns = match run.in_time {
            true => time_ns(last),
            false => (0..count).map(time_ns).max().unwrap_or(i64::MIN),
        };
        let last = (run_sums.payload_len, icrc(last));
        requests.advance(count, at, last, run_sums.reliable);
        // the others of a run may not ask
        requests.note_asked(super::psn::add(run.psn, last_index));
        requests.note_window(stats);
        run_sums.count += count as u64;
        self.last_ns = self.last_ns.max(latest_ns);
        count
    }

    /// How many packets from a PSN on their responses find, by the peer or by the index.
    #[inline]
    fn findable(&self, from: u32) -> usize {
        match self.peer {
            Some(_) => usize::MAX,
            None => self.indexed.map_or(0, |indexed| indexed.covered(from)),
        }
    }

    /// Adds the current run to the statistics.
    pub(super) fn settle(&mut self, efficiency: &mut Efficiency) {
        if let Some(run_sums) = self.run_sums.take().filter(|sums| sums.count > 0) {
            self.good += run_sums.count;
            run_sums.settle(&mut self.stats, efficiency);
        }
    }

    /// Takes a request that follows the previous one while nothing is pending, as nearly all do. The
    /// result is that of [`Self::packet`], at less cost. `false`: not such a packet.
    #[inline]
    pub(super) fn in_order(&mut self, captured: &Captured<'_>, context: &mut Context<'_>) -> bool {
        let &Captured { packet, frame, op, at, .. } = captured;
        let service = op.service();
        let reliable = service.is_reliable();
        let ready = self.service == Some(service)
            && matches!(service, Service::Rc | Service::Xrc | Service::Uc)
            && (!reliable || self.findable(packet.psn) > 0)
            && matches!(op.class, Class::Send | Class::Write)
            && op.position == Position::Only
            && self.requests.next() == packet.psn
            && self.requests.is_idle(self.stats.pmtu)
            && self.constant.agrees(packet, &self.stats);
        if !ready {
            return false;
        }
        self.settle(context.efficiency);
        let bytes = packet.payload_len;
        if op.class == Class::Write && packet.reth(frame).is_none_or(|reth| reth.len != bytes) {
            return false;
        }
        self.requests.note_idle(self.last_ns, at, &mut self.stats, context);
        self.last_ns = self.last_ns.max(at.time_ns);
        self.good += 1;
        self.stats.count(packet, at.time_ns, true);
        let icrc = icrc::found(packet, frame).unwrap_or(0);
        self.requests.advance(1, |_| at, (bytes, icrc), reliable);
        if packet.ack_req() {
            self.requests.note_asked(packet.psn);
        }
        self.requests.note_window(&mut self.stats);
        complete(whole_message(captured, context), &mut self.stats, context);
        if !context.keep_messages {
            self.run_sums = Some(RunSums::new(packet, captured.headers, reliable, self.stats.pmtu));
        }
        true
    }

    /// Takes an ACK while nothing is pending that it could settle, as nearly all are. The result is that of
    /// [`Self::packet`], at less cost. `false`: not such a packet.
    #[inline]
    pub(super) fn ack_in_order(
        &mut self,
        peer: &mut Self,
        captured: &Captured<'_>,
        context: &mut Context<'_>,
    ) -> bool {
        let &Captured { packet, frame, op, at, .. } = captured;
        let Some(aeth) = packet.aeth(frame) else { return false };
        let Syndrome::Ack { credit } = aeth.kind() else { return false };
        let learns_mtu = peer.stats.pmtu_guessed || (peer.stats.pmtu == 0 && self.stats.pmtu > 0);
        let ready = self.service == Some(op.service())
            && !learns_mtu
            && !self.responses.restarts(aeth.msn)
            && self.constant.agrees(packet, &self.stats);
        if !ready {
            return false;
        }
        let Some(messages) =
            peer.requests.acknowledge_in_order(packet.psn, at, &mut peer.stats, context)
        else {
            return false;
        };
        self.settle(context.efficiency);
        self.last_ns = self.last_ns.max(at.time_ns);
        self.good += 1;
        self.stats.count(packet, at.time_ns, false);
        self.stats.acks += 1;
        self.stats.note_credit(credit);
        self.fitting += 1;
        self.stats.acked_messages += u64::from(messages);
        self.responses.pass_reads(&peer.requests, next_psn(packet.psn), &mut self.stats);
        self.responses.note_acked(Acked {
            messages,
            advanced: true,
            exact: true,
            ..Acked::default()
        });
        peer.requests.note_msn(aeth.msn);
        self.responses.check_msn(packet.psn, aeth.msn, at, context);
        true
    }

    #[inline]
    pub(super) fn packet(
        &mut self,
        peer: Option<&mut Self>,
        captured: &Captured<'_>,
        corrupt: bool,
        context: &mut Context<'_>,
    ) {
        let &Captured { packet, frame, op, at, .. } = captured;
        self.settle(context.efficiency);
        let since_ns = self.last_ns;
        self.last_ns = since_ns.max(at.time_ns);
        self.stats.count(packet, at.time_ns, op.is_data());
        if corrupt {
            self.corrupt += 1;
            if self.corrupt <= self.good + CORRUPT_HEADSTART {
                self.requests.note_corrupt(packet.psn, at);
                let status = PsnStatus::Corrupt;
                context.verdicts.add(|| Verdict::Status { packet: at.packet, status });
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
                    if op.needs_answer() {
                        context.answer = peer.responses.answer(packet.psn);
                    }
                    if self.stats.pmtu == 0 {
                        self.stats.pmtu = peer.stats.pmtu;
                        self.stats.pmtu_guessed = peer.stats.pmtu_guessed;
                    }
                }
                let request = Request {
                    psn: packet.psn,
                    op,
                    bytes: packet.payload_len,
                    wire: packet.wire_len,
                    more_frames: packet.more_frames,
                    reth: packet.reth(frame),
                    icrc: icrc::found(packet, frame).unwrap_or(0),
                    at,
                    reliable: op.service().is_reliable(),
                    since_ns,
                    asks: packet.ack_req() || op.needs_answer(),
                };
                self.requests.packet(&request, &mut self.stats, context);
            }
            Service::Ud => {
                let message = whole_message(captured, context);
                belongs(at, &message, context);
                complete(message, &mut self.stats, context);
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
        let &Captured { packet, frame, op, at, .. } = captured;
        let aeth = packet.aeth(frame);
        let syndrome = aeth.map(crate::packet::Aeth::kind);
        self.count_syndrome(peer.as_deref(), packet.psn, op, syndrome, at, context);
        let psn = packet.psn;
        let response = Response {
            psn,
            op,
            bytes: packet.payload_len,
            wire: packet.wire_len,
            more_frames: packet.more_frames,
            at,
        };
        let Some(peer) = peer else {
            if op.class == Class::ReadResponse {
                self.responses.packet(&response, None, &mut self.stats, context);
            }
            record_status(at, syndrome, PsnStatus::AnswerUnpaired, context);
            return;
        };
        if peer.requests.started() {
            // a repeated response to an old request proves nothing
            if peer.requests.expects(psn) {
                self.fitting += 1;
            } else if peer.requests.unknown(psn) {
                self.unfitting += 1;
            }
        }
        let open = peer.stats.pmtu == 0 || peer.stats.pmtu_guessed;
        if self.stats.pmtu > 0 && !self.stats.pmtu_guessed && open {
            peer.stats.pmtu = self.stats.pmtu;
            peer.stats.pmtu_guessed = false;
        }
        peer.stats.correct_pmtu(packet.payload_len);
        // the peer's own data may have shown the path MTU since its last request
        peer.requests.note_mtu(peer.stats.pmtu);
        self.note_restart(peer, psn, aeth, at, context);
        // the requests are the subject from here on
        let from_a = std::mem::replace(&mut context.from_a, peer.from_a);
        let Flow { requests, stats, .. } = &mut *peer;
        let mut acked = Acked::default();
        match syndrome {
            Some(Syndrome::Nak { code: 0 }) => {
                let late = !aeth.is_some_and(|aeth| self.responses.acked_before(psn, aeth.msn));
                requests.nak(psn, late, at, stats, context);
            }
            Some(Syndrome::Nak { .. }) => requests.refuse(psn),
            Some(Syndrome::Rnr { timer }) => {
                requests.rnr(psn, rnr_delay_ns(timer), at, stats, context);
            }
            Some(Syndrome::Ack { .. } | Syndrome::Reserved) | None => {
                acked = requests.acknowledge(psn, at, stats, context);
            }
        }
        let gaps = self.stats.gaps;
        let read = requests.read_at(psn);
        // what the responder has executed before this response it has answered before
        let executed = match syndrome {
            _ if acked.early => None,
            Some(Syndrome::Reserved) => None,
            Some(Syndrome::Ack { .. }) if op.class == Class::Acknowledge => Some(next_psn(psn)),
            _ => Some(psn),
        };
        if let Some(to) = executed {
            self.responses.pass_reads(requests, to, &mut self.stats);
        }
        if op.class == Class::AtomicAcknowledge {
            self.responses.note_atomic(psn);
        }
        if op.class == Class::ReadResponse && self.responses.has(psn) && requests.tells_replay(psn)
        {
            context.find(Rule::ReadReplay, at, true, || {
                format!(
                    "the READ response with PSN {psn} was captured before, and the capture has no \
                     READ that asks for it again: duplicated in transit, or the capture lost the READ"
                )
            });
        }
        context.from_a = from_a;
        self.responses.note_acked(acked);
        self.stats.acked_messages += u64::from(acked.messages);
        if op.class == Class::ReadResponse {
            self.responses.packet(&response, read, &mut self.stats, context);
        }
        let status = match acked {
            _ if self.stats.gaps > gaps => PsnStatus::AnswerGap,
            Acked { early: true, .. } => PsnStatus::AnswerEarly,
            Acked { advanced: true, .. } => PsnStatus::Answer,
            _ => PsnStatus::AnswerAgain,
        };
        record_status(at, syndrome, status, context);
        let request = match read.filter(|_| op.class == Class::ReadResponse) {
            Some(read) => (!read.asked_again(psn) && acked.advanced).then_some(read.at),
            None => acked.answers,
        };
        if let Some(request) = request {
            let ns = at.time_ns.saturating_sub(request.time_ns);
            let (packet, to) = (at.packet, request.packet);
            context.verdicts.add(|| Verdict::Response { packet, to, ns });
        }
        if let (Class::Acknowledge, Some(aeth)) = (op.class, aeth) {
            if acked.regress {
                context.find(Rule::AckRegress, at, true, || {
                    format!("acknowledges PSN {psn}, lower than an earlier ACK: late or wrong")
                });
            }
            if acked.advanced {
                peer.requests.note_msn(aeth.msn);
                self.responses.check_msn(psn, aeth.msn, at, context);
            }
        }
    }

    /// Handles an ACK after skipped PSNs whose MSN restarts: another connection now has the QP numbers,
    /// and the skipped PSNs never existed.
    fn note_restart(
        &mut self,
        peer: &mut Self,
        psn: u32,
        aeth: Option<Aeth>,
        at: At,
        context: &mut Context<'_>,
    ) {
        let Some(aeth) = aeth.filter(|aeth| self.responses.restarts(aeth.msn)) else { return };
        let skipped = peer.requests.skip_to_restart(psn, &mut peer.stats, context);
        if skipped > 0 {
            self.responses.forget_msn();
            context.find(Rule::QpnReuse, at, true, || {
                format!(
                    "MSN {} restarts after {skipped} PSNs that were not captured: another \
                     connection has these QP numbers now",
                    aeth.msn
                )
            });
        }
    }

    fn count_syndrome(
        &mut self,
        peer: Option<&Self>,
        psn: u32,
        op: &Opcode,
        syndrome: Option<Syndrome>,
        at: At,
        context: &mut Context<'_>,
    ) {
        let stats = &mut self.stats;
        match syndrome {
            Some(Syndrome::Ack { credit }) => {
                if op.class == Class::Acknowledge {
                    stats.acks += 1;
                }
                stats.note_credit(credit);
            }
            Some(Syndrome::Rnr { timer }) => {
                let ns = rnr_delay_ns(timer);
                stats.rnr += 1;
                let (min, max) = stats.rnr_timer_ns.unwrap_or((ns, ns));
                stats.rnr_timer_ns = Some((min.min(ns), max.max(ns)));
                context.find(Rule::Rnr, at, false, || {
                    format!("receiver not ready for PSN {psn}; it requests a wait of {ns} ns")
                });
            }
            Some(Syndrome::Nak { code }) => {
                let index = usize::from(code).min(NAK_NAMES.len() - 1);
                stats.naks[index] += 1;
                if code != 0 {
                    context.find(Rule::Nak, at, false, || {
                        // invalid requests are also those beyond the responder's resources
                        let asked = peer.filter(|_| index == 1);
                        let hint = asked
                            .map(|peer| peer.requests.depth_hint(psn, &peer.stats))
                            .unwrap_or_default();
                        format!("NAK for PSN {psn}: {}{hint}", NAK_NAMES[index])
                    });
                }
            }
            Some(Syndrome::Reserved) | None => {}
        }
    }
}

const fn next_psn(psn: u32) -> u32 {
    super::psn::add(psn, 1)
}

/// Records the status of a response; `status` applies if it is not a NAK.
/// The message of a packet that is one.
#[inline(always)]
fn whole_message(captured: &Captured<'_>, context: &Context<'_>) -> Message {
    let &Captured { packet, op, at, .. } = captured;
    Message {
        connection: context.connection,
        from_a: context.from_a,
        opcode: op.code,
        net: context.net,
        psn: packet.psn,
        packets: 1,
        frames: 1 + u32::from(packet.more_frames),
        bytes: packet.payload_len.into(),
        wire_bytes: packet.wire_len.into(),
        first: at,
        last: at,
    }
}

fn record_status(at: At, syndrome: Option<Syndrome>, status: PsnStatus, context: &mut Context<'_>) {
    let status = match syndrome {
        Some(Syndrome::Nak { .. }) => PsnStatus::Nak,
        Some(Syndrome::Rnr { .. }) => PsnStatus::RnrNak,
        Some(Syndrome::Ack { .. } | Syndrome::Reserved) | None => status,
    };
    context.verdicts.add(|| Verdict::Status { packet: at.packet, status });
}
