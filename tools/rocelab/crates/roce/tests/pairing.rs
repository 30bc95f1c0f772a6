// SPDX-License-Identifier: GPL-2.0-or-later
//! The two directions of a connection are paired, for any number of queue pairs.

mod support;

use rc_simulator::frame::opcode::{ACKNOWLEDGE, WRITE_ONLY};
use rc_simulator::frame::{ACK, Host, Transport};
use roce::flow::{Config, Connection, PairedBy};
use support::Capture;

const A: Host = Host::new(1);
const B: Host = Host::new(2);

fn write(qp: u32, psn: u32) -> Transport {
    Transport::new(WRITE_ONLY, 0x10_0000 + qp, psn).reth(0, 1, 64).payload(64).ack_req()
}

fn ack(qp: u32, psn: u32, msn: u32) -> Transport {
    Transport::new(ACKNOWLEDGE, 0x20_0000 + qp, psn).aeth(ACK, msn)
}

/// Rounds in which every queue pair sends one WRITE, and then every one gets its ACK.
fn in_lockstep(
    qps: u32,
    rounds: u32,
    start: impl Fn(u32) -> u32,
    port: impl Fn(u32) -> u16,
) -> Vec<Connection> {
    let mut capture = Capture::new(Config { max_connections: 1 << 16, ..Config::default() });
    for round in 0..rounds {
        for qp in 0..qps {
            capture.packet(A.with_port(port(qp)), B, &write(qp, start(qp) + round));
        }
        for qp in 0..qps {
            capture.packet(B.with_port(port(qp)), A, &ack(qp, start(qp) + round, round + 1));
        }
    }
    capture.finish().0
}

fn assert_paired(connections: &[Connection], qps: u32, how: PairedBy) {
    let others = connections.iter().filter(|one| one.paired_by != Some(how)).count();
    // the last of equal directions is the only one left
    assert!(others <= usize::from(how == PairedBy::SourcePort), "{others} are paired otherwise");
    assert_eq!(connections.len(), qps as usize);
    for connection in connections {
        let (a, b) = (connection.a.qpn.unwrap(), connection.b.qpn.unwrap());
        assert_eq!(a - 0x20_0000, b - 0x10_0000, "the wrong directions are paired");
        assert!(connection.directions.iter().all(Option::is_some));
    }
}

#[test]
fn as_many_queue_pairs_as_there_are() {
    for qps in [1, 64, 65, 1000] {
        let found = in_lockstep(qps, 2, |qp| qp * 5000, |_| 0xc000);
        assert_paired(&found, qps, PairedBy::Psn);
    }
}

#[test]
fn ten_thousand_queue_pairs() {
    let found = in_lockstep(10_000, 2, |qp| qp * 1600, |_| 0xc000);
    assert_paired(&found, 10_000, PairedBy::Psn);
}

#[test]
fn equal_psns_pair_by_source_port() {
    for qps in [2, 16, 3000] {
        let found = in_lockstep(qps, 4, |_| 0, |qp| 0xc000 + qp as u16);
        assert_paired(&found, qps, PairedBy::SourcePort);
    }
}

#[test]
fn nothing_tells_equal_directions_apart() {
    let found = in_lockstep(16, 8, |_| 0, |_| 0xc000);
    assert_eq!(found.len(), 32);
    assert!(found.iter().all(|connection| connection.paired_by.is_none()));
}

#[test]
fn a_direction_that_was_not_acknowledged_for_long_still_pairs() {
    let mut capture = Capture::new(Config::default());
    let start = 0xff_f000;
    for at in 0..20_000 {
        capture.packet(A, B, &write(0, start + at));
        capture.packet(A, B, &write(1, 0x40_0000 + at));
    }
    for at in [5000, 12_000, 19_999] {
        capture.packet(B, A, &ack(0, start + at, 0));
        capture.packet(B, A, &ack(1, 0x40_0000 + at, 0));
    }
    assert_paired(&capture.finish().0, 2, PairedBy::Psn);
}
