// SPDX-License-Identifier: GPL-2.0-or-later
//! An excerpt gives the connections of its capture.

mod support;

use engine::read::{Input, write_excerpt};
use engine::{Analyzer, Options};
use rc_simulator::frame::{Transport, ethernet, opcode};
use roce::Ports;
use roce::icrc::Absence;
use support::{A, B, Captured, Endian, Unit, each_microsecond, input, pcap};

fn options(absence: Option<Absence>, looks: u32) -> Options {
    let looks = if looks > 0 { vec![(0, looks)] } else { Vec::new() };
    Options { icrc: false, looks, absence, ..Options::default() }
}

/// A SEND with these bytes at the end of its payload, whose lengths leave out an ICRC.
fn send(psn: u32, end: u8) -> Vec<u8> {
    let mut frame = ethernet(A, B, 0, &Transport::new(opcode::SEND_ONLY, 18, psn).payload(64));
    let len = frame.len();
    frame[len - 8..].fill(end);
    frame
}

fn followed(mut analyzer: Analyzer) -> String {
    while analyzer.step() {}
    let connections = analyzer.finish();
    format!("{connections:?} {:?} {:?}", analyzer.totals, analyzer.copies())
}

fn from_capture(file: &[u8], options: &Options) -> String {
    followed(Analyzer::new(vec![input(file.to_vec())], options.clone()))
}

fn from_excerpt(file: &[u8], options: &Options) -> String {
    let mut excerpt = Vec::new();
    let capture: Input = input(file.to_vec());
    write_excerpt(capture, &mut excerpt, &Ports::default(), options.icrc, 1 << 16).unwrap();
    followed(Analyzer::of_excerpts(vec![input(excerpt)], options.clone()))
}

/// Without an ICRC, the last bytes of a packet are payload, which an excerpt lacks: they tell no copy from
/// another.
#[test]
fn copies_of_packets_without_an_icrc_are_recognised() {
    let sends = [send(1, 1), send(2, 2), send(2, 3), send(3, 4)];
    let frames: Vec<Captured> = each_microsecond(sends);
    let file = pcap(&frames, Endian::Little, Unit::Nano);
    for looks in [0, 2] {
        for absence in [None, Some(Absence::LeftOut), Some(Absence::Counted)] {
            let options = options(absence, looks);
            let whole = from_capture(&file, &options);
            assert_eq!(from_excerpt(&file, &options), whole, "{absence:?}, {looks} looks");
            // with an ICRC, packets with other ones are no copies
            let copied = if looks > 0 { "(0, 1)" } else { "duplicates: 1" };
            assert_eq!(whole.contains(copied), absence.is_some(), "{whole}");
        }
    }
}
