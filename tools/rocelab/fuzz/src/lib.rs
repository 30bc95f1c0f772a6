// SPDX-License-Identifier: GPL-2.0-or-later
//! What the fuzzers run: libFuzzer's targets, and the mutations of `tests/mutations.rs`.

use std::io::Cursor;

use _core::read::{Block, Counter, Reader, open_compressed};
use _core::{Engine, Options, Select};
use roce::flow::Config;
use roce::{Frame, Link, Memory, Own, Packet, Ports, Recalled, decode, icrc};

/// Any bytes as a capture file, compressed or not: read to the end in pieces of a hostile size.
pub fn readers(input: &[u8]) {
    let Some((&piece, file)) = input.split_first() else { return };
    let Ok(plain) = open_compressed(Box::new(Cursor::new(file.to_vec())), Counter::default())
    else {
        return;
    };
    let mut reader = Reader::new(plain, 0, usize::from(piece) + 1);
    let mut block = Block::default();
    let mut last = 0;
    loop {
        let more = reader.fill(&mut block);
        for record in &block.records {
            assert_eq!(block.frame(record).len(), record.len as usize);
            assert_eq!(record.number, last + 1);
            last = record.number;
            let _ = block.comment(record);
        }
        if !matches!(more, Ok(true)) {
            break;
        }
    }
}

/// Any bytes as a frame of any link type: decode, every accessor, ICRC and its diagnosis.
pub fn decoder(input: &[u8]) {
    let Some((&choice, frame)) = input.split_first() else { return };
    let link = match choice & 3 {
        0 => Link::Ethernet,
        1 => Link::LinuxSll,
        2 => Link::LinuxSll2,
        _ => Link::RawIp,
    };
    // the rest of the choice lengthens the frame on the wire: a snapped capture
    let wire_len = frame.len() as u32 + u32::from(choice >> 2) * 16;
    let Frame::Roce(packet) = decode(link, frame, wire_len, &Ports::default()) else { return };
    assert!(usize::from(packet.bth_off) + roce::BTH_LEN <= frame.len());
    assert!(packet.payload(frame).len() <= packet.payload_len as usize);
    let _ = (packet.reth(frame), packet.aeth(frame), packet.deth(frame), packet.atomic(frame));
    let _ = (packet.atomic_ack(frame), packet.imm(frame), packet.ieth(frame));
    let _ = (packet.xrcsrq(frame), packet.rdeth(frame), packet.feth(frame));
    let _ = roce::cm::parse(&packet, frame);
    let bad = icrc::check(&packet, frame) == roce::Icrc::Bad;
    assert_eq!(icrc::diagnose(&packet, frame).is_some(), bad);
    let at = usize::from(choice) * 3 % frame.len();
    known_again(link, frame, &packet, at);
}

/// A frame that differs at one place and is known again is judged as if it were decoded.
fn known_again(link: Link, frame: &[u8], packet: &Packet, at: usize) {
    let mut memory = Memory::default();
    memory.keep(link, frame, packet, 0);
    let mut other = frame.to_vec();
    other[at] ^= 0x55;
    for frame in [frame, &other] {
        let Some(known) = memory.recall(link, frame, packet.wire_len, true) else { continue };
        let again = decode(link, frame, packet.wire_len, &Ports::default());
        let Frame::Roce(again) = again else { panic!("{again:?} is known as RoCE") };
        assert_eq!((known.own.psn, known.own.apsn), (again.psn, again.apsn));
        assert_eq!(known.own, Own::of(&again, frame));
        assert_eq!(known.icrc, icrc::check(&again, frame));
        let alike = Packet { psn: again.psn, apsn: again.apsn, ..*packet };
        assert_eq!(format!("{alike:?}"), format!("{again:?}"));
        let next =
            Recalled { own: Own { psn: known.own.psn.wrapping_sub(1), ..known.own }, ..known };
        let goes_on = memory.run(next, [(link, frame, packet.wire_len)].into_iter(), true) == 1;
        assert_eq!(goes_on, known.icrc != roce::Icrc::Bad);
    }
}

/// Any bytes as a capture, through the whole pipeline with tight limits.
pub fn tracker(file: &[u8]) {
    let Ok(plain) = open_compressed(Box::new(Cursor::new(file.to_vec())), Counter::default())
    else {
        return;
    };
    // what keeps rows, or verdicts, goes another way through the tracker than what does not
    let choice = file.last().copied().unwrap_or_default();
    let (rows_kept, keep_verdicts) = (choice & 1 != 0, choice & 2 != 0);
    let tracker = Config {
        max_live: 4,
        max_connections: 8,
        max_findings: 8,
        go_back_n: true,
        keep_messages: rows_kept,
        keep_verdicts,
    };
    let options = Options {
        ports: vec![],
        // a fuzzer does not find right ICRCs: with them checked no packet would be followed
        icrc: false,
        threads: 1,
        packets: rows_kept,
        select: Select::default(),
        tracker,
    };
    let mut engine = Engine::new(vec![plain], options);
    while engine.step() {}
    let rows = engine.finish();
    assert!(rows.len() <= 8);
    for row in &rows {
        for stats in row.directions.iter().flatten() {
            assert!(stats.goodput_bytes <= stats.payload_bytes);
            assert!(stats.retransmitted + stats.messages <= stats.packets + stats.retransmitted);
        }
    }
    let totals = &engine.totals;
    let headers: u64 = totals.by_header().iter().map(|row| row.1).sum();
    assert_eq!(headers + totals.payload_bytes, totals.wire_bytes);
}
