// SPDX-License-Identifier: GPL-2.0-or-later
//! What disturbances cost a sender where two of them meet.

mod support;

use rc_simulator::frame::opcode::{ACKNOWLEDGE, WRITE_ONLY};
use rc_simulator::frame::{ACK, Host, NAK_SEQUENCE, Transport};
use roce::flow::{Config, Repair, Trouble};
use support::Capture;

const A: Host = Host::new(1);
const B: Host = Host::new(2);
/// Much longer than an answer takes, ns.
const LONG: i64 = 200_000;

fn write(psn: u32) -> Transport {
    Transport::new(WRITE_ONLY, 18, psn).reth(0, 1, 64).payload(64).ack_req()
}

fn response(psn: u32, syndrome: u8, msn: u32) -> Transport {
    Transport::new(ACKNOWLEDGE, 17, psn).aeth(syndrome, msn)
}

/// A capture whose first message was answered after 1 µs, and in which three more were sent.
fn begun() -> Capture {
    let mut capture = Capture::new(Config::default());
    capture.packet(A, B, &write(1));
    capture.packet(B, A, &response(1, ACK, 1));
    send(&mut capture, &[2, 3, 4]);
    capture
}

fn send(capture: &mut Capture, psns: &[u32]) {
    for &psn in psns {
        capture.packet(A, B, &write(psn));
    }
}

/// The costs of the requester: why, how it was repaired, and the time.
fn costs(capture: Capture) -> Vec<(Trouble, Repair, u64)> {
    let (connections, _) = capture.finish();
    let stats = connections[0].directions[0].as_ref().expect("the requester sent");
    let rows = stats.costs.iter().flat_map(|costs| &costs.rows);
    rows.map(|row| (row.trouble, row.repair, row.ns)).collect()
}

#[test]
fn the_time_of_a_late_answer_is_not_also_that_of_a_loss() {
    let mut capture = begun();
    capture.wait_ns(LONG);
    capture.packet(B, A, &response(2, ACK, 2));
    capture.packet(B, A, &response(3, NAK_SEQUENCE, 2));
    send(&mut capture, &[3, 4]);
    capture.packet(B, A, &response(4, ACK, 4));
    assert_eq!(
        costs(capture),
        [(Trouble::Late, Repair::None, LONG as u64), (Trouble::LossFar, Repair::Nak, 2000),]
    );
}

#[test]
fn an_answer_to_what_was_sent_again_may_be_late() {
    let mut capture = begun();
    capture.packet(B, A, &response(2, NAK_SEQUENCE, 1));
    send(&mut capture, &[2, 3, 4]);
    capture.wait_ns(LONG);
    capture.packet(B, A, &response(1, ACK, 1));
    send(&mut capture, &[2, 3, 4]);
    capture.packet(B, A, &response(4, ACK, 4));
    let late = LONG as u64 + 1000;
    assert_eq!(
        costs(capture),
        [
            (Trouble::Late, Repair::None, late),
            (Trouble::LossFar, Repair::Nak, 4000),
            (Trouble::LossFar, Repair::Timeout, 1000),
        ]
    );
}

#[test]
fn a_timer_runs_out_for_the_last_copy_of_a_packet() {
    let mut damaged = begun();
    damaged.packet(B, A, &response(2, NAK_SEQUENCE, 1));
    damaged.corrupted(A, B, &write(2));
    send(&mut damaged, &[3, 4]);
    damaged.wait_ns(LONG);
    send(&mut damaged, &[2, 3, 4]);
    damaged.packet(B, A, &response(4, ACK, 4));
    let rows = costs(damaged);
    let timeout = rows.iter().find(|(_, repair, _)| *repair == Repair::Timeout);
    assert_eq!(timeout.map(|&(trouble, ..)| trouble), Some(Trouble::Corrupted), "{rows:?}");
}
