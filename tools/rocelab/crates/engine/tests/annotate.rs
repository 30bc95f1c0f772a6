// SPDX-License-Identifier: GPL-2.0-or-later
//! The annotated copy has every block of its input, and comments on its packets.

mod support;

use std::io;

use engine::annotate::{Annotator, CopyError, Options, Written};
use engine::join::{CaptureJoin, JoinOptions};
use rc_simulator::frame::{ACK, NAK_SEQUENCE};
use roce::flow::PsnStatus;
use roce::join::Trace;
use support::{
    Captured, Endian, Unit, acknowledge, each_microsecond, input, pcap, pcapng, read_all, write,
    writes,
};

fn options() -> Options {
    Options {
        ports: Vec::new(),
        threads: 1,
        go_back_n: false,
        window: 1 << 17,
        looks: Vec::new(),
        absence: None,
        follow_corrupt: false,
        sampled: false,
        verdict: Vec::new(),
        comment: None,
    }
}

/// What an annotation did, and the copy.
struct Made {
    packets: u64,
    commented: u64,
    bare: u64,
    late: u64,
    written: Written,
    error: Option<CopyError>,
    file: Vec<u8>,
}

fn annotate(capture: &[u8], join: Option<CaptureJoin>, options: &Options) -> Made {
    let (opened, mut file) = (|| input(capture.to_vec()), Vec::new());
    let mut annotator = Annotator::new(opened(), opened(), &mut file, join, options);
    while annotator.step().unwrap() {}
    let Annotator { copier, notes, error, .. } = annotator;
    let (packets, commented, bare) = (copier.packets, copier.commented, copier.bare);
    drop(copier);
    Made { packets, commented, bare, late: notes.late, written: notes.written, error, file }
}

fn annotated(capture: &[u8]) -> Vec<u8> {
    annotate(capture, None, &options()).file
}

/// The first comment of each packet of a file.
fn comments(file: Vec<u8>) -> Vec<String> {
    let (frames, error) = read_all(input(file), 1 << 16);
    assert!(error.is_none(), "{error:?}");
    frames.into_iter().map(|captured| captured.comment.unwrap_or_default()).collect()
}

/// A loss: WRITE 2 is lost before the capture, and sent again after a NAK.
fn loss() -> Vec<Captured> {
    each_microsecond([
        write(1),
        write(3),
        acknowledge(2, NAK_SEQUENCE, 1),
        write(2),
        write(3),
        acknowledge(3, ACK, 3),
    ])
}

#[test]
fn each_packet_gets_its_status() {
    let file = pcapng(&loss(), Endian::Little);
    let expected = ["new", "gap", "nak", "retransmission_after_nak", "", "answer"];
    for threads in [1, 3] {
        let Made { file, written, .. } = annotate(&file, None, &Options { threads, ..options() });
        let texts = comments(file);
        for (text, status) in texts.iter().zip(expected) {
            assert!(text.contains(&format!(" psn_status={status}")), "{texts:#?}");
        }
        assert!(texts[4].contains("psn_status=retransmission_after_nak"), "{texts:#?}");
        assert!(texts[1].contains(" finding=") || texts[2].contains(" finding="), "{texts:#?}");
        assert_eq!(written.status[PsnStatus::AfterNak as usize], 2);
    }
}

#[test]
fn frames_times_and_comments_of_the_input_stay() {
    let mut frames = loss();
    frames[0].comment = Some("a note".to_owned());
    for endian in [Endian::Little, Endian::Big] {
        let (read, error) = read_all(input(annotated(&pcapng(&frames, endian))), 1 << 16);
        assert!(error.is_none(), "{endian:?}: {error:?}");
        for (read, written) in read.iter().zip(&frames) {
            assert_eq!((read.time_ns, &read.frame), (written.time_ns, &written.frame));
        }
        assert_eq!((read.len(), read[0].comment.as_deref()), (frames.len(), Some("a note")));
    }
}

#[test]
fn pcap_becomes_pcapng() {
    for unit in [Unit::Micro, Unit::Nano] {
        for endian in [Endian::Little, Endian::Big] {
            let made = annotated(&pcap(&loss(), endian, unit));
            let same = annotated(&pcapng(&loss(), Endian::Little));
            assert_eq!(made[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
            let (made, same) = (read_all(input(made), 4096).0, read_all(input(same), 4096).0);
            assert_eq!(made, same, "{endian:?} {unit:?}");
        }
    }
}

#[test]
fn annotating_twice_changes_nothing() {
    let once = annotated(&pcapng(&loss(), Endian::Big));
    assert!(annotated(&once) == once, "no comment is added again");
}

#[test]
fn other_blocks_are_copied_unchanged() {
    let endian = Endian::Little;
    let small = endian.block(0xbad, b"four");
    // larger than what the copy holds
    let large = endian.block(0x4000_0bad, &[9; 300_000]);
    let file = [pcapng(&loss(), endian), small.clone(), large.clone()].concat();
    let made = annotated(&file);
    let start = made.len() - small.len() - large.len();
    assert!(made[start..] == [small, large].concat());
    assert_eq!(comments(made).len(), loss().len());
}

#[test]
fn a_simple_packet_has_no_room_for_comments() {
    let endian = Endian::Big;
    let frame = write(4);
    let mut body = endian.u32(frame.len() as u32).to_vec();
    body.extend(&frame);
    body.resize(body.len().next_multiple_of(4), 0);
    let simple = endian.block(3, &body);
    let file = [pcapng(&loss(), endian), simple.clone()].concat();
    let made = annotate(&file, None, &options());
    assert_eq!((made.packets, made.commented, made.bare), (7, 6, 1));
    assert!(made.file.ends_with(&simple));
}

#[test]
fn a_message_is_a_range_of_frames() {
    let made = annotate(&pcapng(&writes(0..3), Endian::Little), None, &options());
    assert_eq!(made.written.messages, 3);
    let texts = comments(made.file);
    assert!(texts[2].contains(" message=3..3"), "{texts:#?}");
    assert!(texts[3].contains(" response_to=3 response_ns=1000"), "{texts:#?}");
}

#[test]
fn what_comes_after_the_window_is_late() {
    // blocks are analysed whole, so the retransmission must span more than one
    let mut frames = vec![write(0), write(5000)];
    frames.push(acknowledge(1, NAK_SEQUENCE, 1));
    frames.extend((1..=5000).map(write));
    frames.push(acknowledge(5000, ACK, 5001));
    let file = pcapng(&each_microsecond(frames), Endian::Little);
    let narrow = annotate(&file, None, &Options { window: 1, ..options() });
    let wide = annotate(&file, None, &options());
    let resent = |made: &Made| made.written.status[PsnStatus::AfterNak as usize];
    assert_eq!((wide.late, resent(&wide)), (0, 5000));
    assert!(narrow.late > 0 && resent(&narrow) < 5000, "{}", resent(&narrow));
    assert_eq!(narrow.packets, wide.packets);
}

#[test]
fn a_cut_file_is_copied_to_its_last_whole_packet() {
    let file = pcapng(&loss(), Endian::Little);
    for missing in [1, 20, 90] {
        let made = annotate(&file[..file.len() - missing], None, &options());
        assert!(matches!(made.error, Some(CopyError::Cut(5))), "{:?}", made.error);
        assert_eq!(comments(made.file).len(), 5);
    }
}

struct Full;

impl io::Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let file = pcapng(&loss(), Endian::Little);
    let opened = || input(file.clone());
    let mut made = Annotator::new(opened(), opened(), Full, None, &options());
    let failed = loop {
        match made.step() {
            Ok(true) => {}
            other => break other,
        }
    };
    assert!(
        matches!(failed, Err(CopyError::Write(error)) if error.kind() == io::ErrorKind::StorageFull)
    );
}

#[test]
fn the_drivers_comments_come_first() {
    let frames = writes(0..3);
    let text = "rocelab/1 node=n1 dev=rxe0 dir=tx net=v2 op=RC_RDMA_WRITE_ONLY qpn=17 dqpn=18 \
                psn=1 wqe_ns=40";
    let record = Captured { comment: Some(text.to_owned()), ..frames[2].clone() };
    let trace = (input(pcapng(&[record], Endian::Little)), Trace::default());
    let capture = pcapng(&frames, Endian::Little);
    let rows = JoinOptions { rows: true, ..JoinOptions::default() };
    let join = CaptureJoin::new(input(capture.clone()), vec![trace], &rows);
    let made = annotate(&capture, Some(join), &options());
    assert_eq!(made.written.driver, [1, 0]);
    let file = made.file;
    assert_eq!(comments(file.clone())[2], text);
    let all = String::from_utf8_lossy(&file);
    let (_, later) = all.split_once(text).unwrap();
    let next = later.find("rocelab/1").unwrap();
    assert!(later[next..].starts_with("rocelab/1 psn_status=new message=3..3"), "both comments");
}
