// SPDX-License-Identifier: GPL-2.0-or-later
//! The tracker's findings on losses, retransmissions and READs, one hand-built schedule each.

mod support;

use rc_simulator::frame::opcode::{
    ACKNOWLEDGE, READ_REQUEST, READ_RESPONSE_FIRST, READ_RESPONSE_LAST, READ_RESPONSE_MIDDLE,
    SEND_FIRST, SEND_LAST, SEND_MIDDLE, WRITE_ONLY,
};
use rc_simulator::frame::{ACK, Host, NAK_SEQUENCE, Transport, ethernet, rnr_nak};
use roce::finding::{Finding, Rule};
use roce::flow::{Config, Connection, PsnStatus, Stats, Verdict};
use support::{Capture, errors, rules};

const A: Host = Host::new(1);
const B: Host = Host::new(2);

enum Step {
    Request(Transport),
    Response(Transport),
    Wait(i64),
}
use Step::{Request, Response, Wait};

fn write(psn: u32) -> Step {
    Request(Transport::new(WRITE_ONLY, 18, psn).reth(0, 1, 64).payload(64).ack_req())
}

fn response(psn: u32, syndrome: u8, msn: u32) -> Step {
    Response(Transport::new(ACKNOWLEDGE, 17, psn).aeth(syndrome, msn))
}

fn read(psn: u32, va: u64, len: u32) -> Step {
    Request(Transport::new(READ_REQUEST, 18, psn).reth(va, 1, len))
}

fn read_data(opcode: u8, psn: u32) -> Step {
    let data = Transport::new(opcode, 17, psn);
    let data = if opcode == READ_RESPONSE_MIDDLE { data } else { data.aeth(ACK, 1) };
    Response(data.payload(256))
}

fn follow(steps: impl IntoIterator<Item = Step>, config: Config) -> Capture {
    let mut capture = Capture::new(config);
    for step in steps {
        match step {
            Request(packet) => capture.packet(A, B, &packet),
            Response(packet) => capture.packet(B, A, &packet),
            Wait(ns) => {
                capture.wait_ns(ns);
                None
            }
        };
    }
    capture
}

fn judge(steps: impl IntoIterator<Item = Step>) -> (Connection, Vec<Finding>) {
    let (mut connections, findings) = follow(steps, Config::default()).finish();
    assert_eq!(connections.len(), 1);
    (connections.remove(0), findings)
}

fn requester(connection: &Connection) -> &Stats {
    connection.directions[0].as_ref().expect("the requester sent")
}

#[test]
fn coalesced_acks_over_the_psn_wrap() {
    let start = 0xff_fffd;
    let mut steps: Vec<Step> = (0..6).map(|at| write(start + at)).collect();
    steps.push(response(start + 2, ACK, 3));
    steps.push(response(start + 5, ACK, 6));
    let (connection, findings) = judge(steps);
    assert!(findings.is_empty(), "{findings:?}");
    let requests = requester(&connection);
    assert_eq!((requests.messages, requests.max_outstanding, requests.gaps), (6, 6, 0));
    assert_eq!(requests.latency.count(), 6);
}

#[test]
fn a_nak_places_the_loss_before_the_tap() {
    let steps = [write(1), write(3), response(2, NAK_SEQUENCE, 1), write(2), write(3)];
    let (connection, findings) = judge(steps.into_iter().chain([response(3, ACK, 3)]));
    assert_eq!(rules(&findings), [Rule::Loss]);
    assert!(findings[0].detail.ends_with("lost before the capture point"), "{findings:?}");
    assert_eq!(requester(&connection).retransmissions.after_nak, 2);
    assert_eq!(requester(&connection).messages, 3);
}

#[test]
fn a_nak_places_the_loss_after_the_tap() {
    let steps = [write(1), write(2), write(3), response(2, NAK_SEQUENCE, 1), write(2), write(3)];
    let (connection, findings) = judge(steps.into_iter().chain([response(3, ACK, 3)]));
    assert_eq!(rules(&findings), [Rule::Loss]);
    assert!(findings[0].detail.ends_with("lost after the capture point"), "{findings:?}");
    assert_eq!(requester(&connection).messages, 3);
}

#[test]
fn two_losses_before_the_tap_leave_the_msn_alone() {
    let mut steps = vec![write(10), response(10, ACK, 6)];
    steps.extend([write(13), write(14), write(15), response(11, NAK_SEQUENCE, 6)]);
    steps.extend((11..16).map(write));
    steps.extend((11..16).map(|psn| response(psn, ACK, psn - 4)));
    let (_, findings) = judge(steps);
    assert!(errors(&findings).is_empty(), "{findings:?}");
}

#[test]
fn a_wrong_msn_is_found_after_a_retransmission() {
    let mut steps = vec![write(1), write(2), response(1, NAK_SEQUENCE, 0), write(1), write(2)];
    steps.push(response(2, ACK, 2));
    for (psn, msn) in [(3, 3), (4, 5)] {
        steps.extend([write(psn), response(psn, ACK, msn)]);
    }
    let (_, findings) = judge(steps);
    assert_eq!(rules(&findings), [Rule::Loss, Rule::Msn]);
    assert_eq!(errors(&findings).len(), 1);
}

#[test]
fn a_nak_before_the_first_captured_psn_is_no_breach() {
    let steps = [write(11), response(10, NAK_SEQUENCE, 7), write(10), write(11)];
    let (_, findings) = judge(steps.into_iter().chain([response(11, ACK, 9)]));
    assert!(errors(&findings).is_empty(), "{findings:?}");
    assert!(findings.iter().all(|one| one.ambiguous), "{findings:?}");
}

#[test]
fn a_nak_for_an_acknowledged_psn_is_a_breach() {
    let nak = |msn| {
        let sent = [write(1), response(1, ACK, 1), write(2), response(2, ACK, 2)];
        judge(sent.into_iter().chain([response(1, NAK_SEQUENCE, msn)])).1
    };
    let findings = nak(2);
    assert_eq!(rules(&findings), [Rule::NakPsn]);
    assert_eq!(errors(&findings).len(), 1);
    // by its MSN, the responder sent it before it acknowledged PSN 1: the ACKs overtook it
    let overtaken = nak(0);
    assert_eq!(rules(&overtaken), [Rule::NakPsn]);
    assert!(overtaken[0].ambiguous);
}

#[test]
fn an_early_ack_is_a_breach_only_where_the_capture_has_all() {
    let early = |msn| [write(7), response(7, ACK, msn), response(8, ACK, msn + 1), write(8)];
    let (_, whole) = judge(early(1));
    assert_eq!((rules(&whole), whole[0].ambiguous), (vec![Rule::AckUnsent], false));
    let (_, midway) = judge(early(100));
    assert_eq!((rules(&midway), midway[0].ambiguous), (vec![Rule::AckUnsent], true));
}

#[test]
fn an_rnr_delay_is_kept_to_one_percent() {
    // timer code 12 is 640 µs; each packet takes 1 µs of it
    let resumed = |wait| [write(1), response(1, rnr_nak(12), 0), Wait(wait), write(1)];
    assert_eq!(rules(&judge(resumed(639_000)).1), [Rule::Rnr]);
    assert_eq!(rules(&judge(resumed(634_000)).1), [Rule::Rnr]);
    let (connection, findings) = judge(resumed(300_000));
    assert_eq!(rules(&findings), [Rule::Rnr, Rule::RnrBackoff]);
    assert!(errors(&findings).is_empty(), "the requester may not have got the NAK");
    assert_eq!(requester(&connection).retransmissions.after_rnr, 1);
}

#[test]
fn the_capture_itself_loses_packets() {
    let steps = [write(1), response(1, ACK, 1), write(3), response(3, ACK, 3)];
    let (connection, findings) = judge(steps);
    assert_eq!(rules(&findings), [Rule::CaptureGap]);
    assert_eq!((requester(&connection).gaps, requester(&connection).missing), (1, 1));
}

#[test]
fn the_same_frame_at_once_is_a_duplicate() {
    let packet = Transport::new(WRITE_ONLY, 18, 1).reth(0, 1, 64).payload(64).ack_req();
    let frame = ethernet(A, B, 7, &packet);
    let mut capture = Capture::new(Config::default());
    capture.frame(1000, &frame);
    capture.frame(1700, &frame);
    capture.packet(B, A, &Transport::new(ACKNOWLEDGE, 17, 1).aeth(ACK, 1));
    let (connections, findings) = capture.finish();
    assert_eq!(rules(&findings), [Rule::Duplicate]);
    assert_eq!(requester(&connections[0]).duplicates, 1);
}

#[test]
fn a_packet_again_after_a_while_is_a_timeout() {
    let (connection, findings) = judge([write(1), Wait(4_000_000), write(1), response(1, ACK, 1)]);
    assert_eq!(rules(&findings), [Rule::Timeout]);
    assert_eq!(requester(&connection).retransmissions.after_timeout, 1);
}

#[test]
fn a_read_spans_its_responses() {
    let mut steps = vec![read(1, 0, 768)];
    for (opcode, psn) in
        [(READ_RESPONSE_FIRST, 1), (READ_RESPONSE_MIDDLE, 2), (READ_RESPONSE_LAST, 3)]
    {
        steps.push(read_data(opcode, psn));
    }
    steps.extend([write(4), response(4, ACK, 2)]);
    let (connection, findings) = judge(steps);
    assert!(findings.is_empty(), "{findings:?}");
    let responder = connection.directions[1].as_ref().unwrap();
    assert_eq!((responder.messages, responder.goodput_bytes, responder.pmtu), (1, 768, 256));
    assert_eq!(requester(&connection).requests, 1);
}

#[test]
fn messages_of_many_packets_are_assembled() {
    let packet = |opcode, psn, len| Request(Transport::new(opcode, 18, psn).payload(len));
    let steps = [packet(SEND_FIRST, 1, 256), packet(SEND_MIDDLE, 2, 256), packet(SEND_LAST, 3, 9)];
    let (connection, findings) = judge(steps);
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!((requester(&connection).messages, requester(&connection).goodput_bytes), (1, 521));
    let broken = [packet(SEND_FIRST, 1, 256), packet(SEND_FIRST, 2, 256), packet(SEND_LAST, 3, 9)];
    assert_eq!(rules(&judge(broken).1), [Rule::OpcodeSequence]);
}

#[test]
fn findings_beyond_the_limit_are_counted() {
    let config = Config { max_findings: 1, ..Config::default() };
    let steps = (0..10).flat_map(|at| [write(2 * at), response(2 * at, ACK, at)]);
    let mut capture = follow(steps, config);
    capture.tracker.finish();
    assert_eq!(capture.tracker.findings.list.len(), 1);
    assert!(capture.tracker.findings.total() > 1);
}

#[test]
fn verdicts_name_the_packets_of_a_retransmission() {
    let config = Config { keep_verdicts: true, ..Config::default() };
    let steps = [write(1), write(2), response(1, NAK_SEQUENCE, 0), write(1), write(2), write(3)];
    let mut capture = follow(steps, config);
    let verdicts = capture.tracker.take_verdicts();
    let resent: Vec<u64> = verdicts
        .iter()
        .filter_map(|verdict| match verdict {
            Verdict::Retransmitted { packet, first: 4 } => Some(*packet),
            _ => None,
        })
        .collect();
    assert_eq!(resent, [4, 5]);
    let status = PsnStatus::AfterNak;
    assert!(verdicts.contains(&Verdict::Retransmission { first: 4, status }));
}
