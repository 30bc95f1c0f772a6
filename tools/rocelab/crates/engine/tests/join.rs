// SPDX-License-Identifier: GPL-2.0-or-later
//! A capture and the traces of the two drivers, joined packet by packet.

mod support;

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;
use engine::join::{CaptureJoin, JoinOptions, Origin, account, origin};
use engine::read::Input;
use roce::join::{Dir, Received, Reject, Row, Sent, Trace};
use support::{Captured, Endian, Unit, each_microsecond, input, pcap, pcapng, write};

const DAY_NS: i64 = 86_400_000_000_000;

/// The comment of a driver on WRITE `psn`.
fn comment(node: &str, dir: &str, psn: usize) -> String {
    let stages = match dir {
        "tx" => "wqe_ns=40 xmit_ns=600",
        _ => "parse_ns=50 queue_ns=2000",
    };
    format!(
        "rocelab/1 node={node} dev=rxe0 dir={dir} net=v2 op=RC_RDMA_WRITE_ONLY qpn=17 dqpn=18 \
         psn={psn} {stages}"
    )
}

/// WRITEs with PSNs from 0 on, as the capture has them.
fn frames(count: u32) -> Vec<Captured> {
    each_microsecond((0..count).map(write))
}

/// The same WRITEs as a driver recorded them, by a clock that is days off.
fn records(node: &str, dir: &str, days: i64, frames: &[Captured]) -> Vec<Captured> {
    let record = |(psn, captured): (usize, &Captured)| Captured {
        time_ns: captured.time_ns + days * DAY_NS,
        comment: Some(comment(node, dir, psn)),
        ..captured.clone()
    };
    frames.iter().enumerate().map(record).collect()
}

fn sender(frames: &[Captured]) -> Vec<Captured> {
    records("n1", "tx", 3, frames)
}

fn receiver(frames: &[Captured]) -> Vec<Captured> {
    records("n2", "rx", -2, frames)
}

fn wire(frames: &[Captured]) -> Input {
    input(pcap(frames, Endian::Little, Unit::Nano))
}

fn trace(records: &[Captured]) -> (Input, Trace) {
    let file = pcapng(records, Endian::Big);
    let trace = account(&file[..]).unwrap();
    (input(file), trace)
}

fn joined(capture: &[Captured], traces: &[&[Captured]]) -> CaptureJoin {
    let traces = traces.iter().map(|records| trace(records)).collect();
    let options = JoinOptions { packets: true, rows: true, ..JoinOptions::default() };
    let mut join = CaptureJoin::new(wire(capture), traces, &options);
    while join.step(7) {}
    join.finish();
    assert!(join.errors().is_empty(), "{:?}", join.errors());
    join
}

/// What became of each packet, by PSN.
fn ways(join: &CaptureJoin) -> Vec<(Option<Sent>, Option<Received>)> {
    let mut rows: Vec<&Row> = join.rows.iter().collect();
    rows.sort_by_key(|row| row.key.psn);
    rows.iter().map(|row| (row.sent, row.received)).collect()
}

#[test]
fn every_packet_is_matched_at_both_ends_though_clocks_differ() {
    let frames = frames(50);
    let join = joined(&frames, &[&sender(&frames), &receiver(&frames)]);
    assert_eq!(ways(&join), [(Some(Sent::Matched), Some(Received::Matched)); 50]);
    let tally = join.tally();
    assert_eq!((tally.frames, tally.tx, tally.rx, tally.unexplained), (50, 50, 50, 0));
    let row = &join.rows[4];
    let (tx, rx) = (row.tx.unwrap(), row.rx.unwrap());
    assert_eq!(tx.stages.get(0), Some(40));
    assert_eq!(join.comment(row, &tx, Dir::Tx).unwrap().text(row.key.net), comment("n1", "tx", 4));
    assert_eq!(join.comment(row, &rx, Dir::Rx).unwrap().text(row.key.net), comment("n2", "rx", 4));
}

#[test]
fn the_columns_have_a_row_per_frame() {
    let frames = frames(6);
    let mut join = joined(&frames, &[&sender(&frames), &receiver(&frames[..5])]);
    let table = join.columns.take().unwrap();
    let text = |name, row| table.column_by_name(name).unwrap().as_string::<i32>().value(row);
    let numbers = |name: &str| table.column_by_name(name).unwrap().as_primitive::<UInt64Type>();
    assert_eq!(table.num_rows(), 6);
    assert_eq!((text("tx_node", 0), text("rx_node", 0), text("rx_dev", 4)), ("n1", "n2", "rxe0"));
    assert_eq!(numbers("tx_xmit_ns").values(), &[600; 6]);
    assert_eq!((numbers("rx_queue_ns").value(4), numbers("rx_queue_ns").is_null(5)), (2000, true));
    assert_eq!(numbers("wire_packet").values(), &[1, 2, 3, 4, 5, 6]);
    assert_eq!((text("received", 4), text("received", 5)), ("matched", "behind_capture"));
    assert!(join.columns.is_empty());
}

#[test]
fn a_missing_frame_or_record_says_where_the_packet_was_lost() {
    let frames = frames(4);
    let mut sent = sender(&frames);
    for captured in &mut sent[3..] {
        captured.comment = captured.comment.take().map(|text| text.replace(" xmit_ns=600", ""));
    }
    // 0: everywhere; 1: lost after the capture; 2 and 3: lost before it
    let join = joined(&frames[..2], &[&sent, &receiver(&frames[..1])]);
    assert_eq!(
        ways(&join),
        [
            (Some(Sent::Matched), Some(Received::Matched)),
            (Some(Sent::Matched), Some(Received::BehindCapture)),
            (Some(Sent::BeforeCapture), None),
            (Some(Sent::BeforeDevice), None),
        ]
    );
}

#[test]
fn a_packet_that_the_capture_missed_joins_its_two_records() {
    let frames = frames(3);
    let join = joined(&frames[..2], &[&sender(&frames), &receiver(&frames)]);
    assert_eq!(ways(&join)[2], (Some(Sent::NotCaptured), Some(Received::NotCaptured)));
    assert_eq!(join.tally().unexplained, 1);
}

#[test]
fn an_end_without_a_trace_is_not_traced() {
    let frames = frames(2);
    let join = joined(&frames, &[&receiver(&frames)]);
    assert_eq!(ways(&join), [(Some(Sent::NotTraced), Some(Received::Matched)); 2]);
}

#[test]
fn a_frame_that_the_network_duplicated_is_a_copy() {
    let frames = frames(1);
    let twice: Vec<Captured> = [&frames[..], &frames[..]].concat();
    let received = [receiver(&frames), receiver(&frames)].concat();
    let join = joined(&twice, &[&sender(&frames), &received]);
    let matched = Some(Received::Matched);
    assert_eq!(ways(&join), [(Some(Sent::Matched), matched), (Some(Sent::Copy), matched)]);
}

#[test]
fn unusable_records_are_counted_by_reason() {
    let frames = frames(6);
    let mut sent = sender(&frames);
    sent[0].comment = Some("a note".to_owned());
    sent[1].comment = Some(comment("n1", "tx", 1).replace("rocelab/1", "rocelab/2"));
    sent[2].comment = Some(comment("n1", "tx", 77));
    sent[3].comment = None;
    sent[4].frame.truncate(45);
    let join = joined(&frames, &[&sent]);
    let rejected = |reject: Reject| join.rejected[reject as usize];
    assert_eq!(rejected(Reject::Foreign), 1);
    assert_eq!(rejected(Reject::Version), 1);
    assert_eq!(rejected(Reject::Contradiction), 1);
    assert_eq!(join.rejected.iter().sum::<u64>(), 3);
    assert_eq!((join.bare, join.cut, join.other, join.tally().tx), (1, [0, 1], [0, 0], 1));
}

#[test]
fn names_beyond_the_limit_are_rejected() {
    let frames = frames(1100);
    let mut sent = sender(&frames);
    for (at, captured) in sent.iter_mut().enumerate() {
        captured.comment = Some(comment(&format!("n{at}"), "tx", at));
    }
    let join = joined(&frames, &[&sent]);
    assert_eq!((join.tally().tx, join.rejected[Reject::Range as usize]), (1024, 1100 - 1024));
}

#[test]
fn a_small_window_resolves_packets_early() {
    let frames = frames(400);
    let (tx, rx) = (sender(&frames), receiver(&frames));
    let options = JoinOptions { window: 8, rows: true, ..JoinOptions::default() };
    let mut join = CaptureJoin::new(wire(&frames), vec![trace(&tx), trace(&rx)], &options);
    while join.step(7) {}
    join.finish();
    // the traces are read in step with the capture, so a window of a few packets is enough
    assert_eq!((join.tally().early, join.rows.len()), (0, 400));
    // a trace that starts a hundred packets later is out of step by as many
    let late: Vec<Captured> = rx.iter().skip(100).cloned().collect();
    let mut join = CaptureJoin::new(wire(&frames), vec![trace(&tx), trace(&late)], &options);
    while join.step(7) {}
    join.finish();
    assert!(join.tally().early > 0);
}

/// A trace with a session comment, an interface and statistics of it.
fn accounted(endian: Endian, session: &str, filter: bool, lost: &[u64]) -> Vec<u8> {
    let interface = if filter { endian.option(11, b"\0qpn 17") } else { Vec::new() };
    let mut file = [endian.section(&endian.option(1, session.as_bytes()))].concat();
    file.extend(endian.interface(&interface));
    for lost in lost {
        let lost = if endian == Endian::Big { lost.to_be_bytes() } else { lost.to_le_bytes() };
        file.extend(endian.block(5, &[vec![0; 12], endian.option(7, &lost)].concat()));
    }
    file
}

#[test]
fn a_trace_accounts_for_what_it_lacks() {
    for endian in [Endian::Little, Endian::Big] {
        let file = accounted(endian, "rocelab.rxedump/1 node=n1 sample=16", true, &[3, 8]);
        let trace = account(&file[..]).unwrap();
        // the last statistics of an interface count
        assert_eq!((trace.lost, trace.sample, trace.filtered), (8, 16, true), "{endian:?}");
        let sections = [file.clone(), file].concat();
        assert_eq!(account(&sections[..]).unwrap().lost, 16, "{endian:?}");
    }
    let plain = account(&pcap(&frames(2), Endian::Little, Unit::Nano)[..]).unwrap();
    assert_eq!((plain.lost, plain.sample, plain.filtered), (0, 0, false));
}

#[test]
fn a_trace_is_told_from_a_capture() {
    let bare = Endian::Little.section(&[]).to_vec();
    let told = accounted(Endian::Big, "rocelab.rxedump/1 node=n1", false, &[]);
    let frames = frames(2);
    for (file, wrote) in [
        (told, Origin::Rxedump),
        (pcapng(&sender(&frames), Endian::Little), Origin::Commented),
        (pcapng(&frames, Endian::Little), Origin::Other),
        (pcap(&frames, Endian::Little, Unit::Nano), Origin::Other),
        (bare, Origin::Unknown),
        (b"no capture".to_vec(), Origin::Unknown),
    ] {
        assert_eq!(origin(input(file)), wrote);
    }
    let long = pcapng(&sender(&self::frames(4000)), Endian::Little);
    assert_eq!(origin(input(long[..long.len() - 5].to_vec())), Origin::Commented);
}

#[test]
fn lost_records_account_for_frames_without_one() {
    let frames = frames(3);
    let mut file = accounted(Endian::Little, "rocelab.rxedump/1 node=n1", false, &[1]);
    for captured in sender(&frames[..1]) {
        let comment = captured.comment.as_deref();
        file.extend(Endian::Little.packet(
            captured.time_ns as u64 / 1000,
            &captured.frame,
            comment,
        ));
    }
    let trace = account(&file[..]).unwrap();
    let options = JoinOptions { rows: true, ..JoinOptions::default() };
    let mut join = CaptureJoin::new(wire(&frames), vec![(input(file), trace)], &options);
    while join.step(100) {}
    join.finish();
    let sent: Vec<_> = ways(&join).into_iter().filter_map(|(sent, _)| sent).collect();
    assert_eq!(sent, [Sent::Matched, Sent::RecordLost, Sent::Unexplained]);
}
