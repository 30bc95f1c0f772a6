// SPDX-License-Identifier: GPL-2.0-or-later
//! The fuzz targets, for libFuzzer and for the mutations of `tests/mutations.rs`.

mod fragments;

use std::io::Cursor;

use engine::read::{
    Block, Counter, ExcerptReader, ReadError, Reader, Record, open_compressed, write_excerpt,
};
use engine::{Analyzer, Filter, Options, piece};
pub use fragments::fragments;
use roce::flow::Config;
use roce::{Frame, HeaderCache, Hit, Link, Packet, Ports, Varying, decode, icrc};

/// Reads any bytes as a capture file, compressed or not, in pieces of any size.
pub fn readers(input: &[u8]) {
    let Some((&piece, file)) = input.split_first() else { return };
    let Ok(plain) = open_compressed(Box::new(Cursor::new(file.to_vec())), Counter::default())
    else {
        return;
    };
    let piece = usize::from(piece) + 1;
    let mut reader = Reader::new(plain, 0, piece);
    let mut block = Block::default();
    let mut last = 0;
    let mut seen = Vec::new();
    let mut more = true;
    while more {
        more = matches!(reader.fill(&mut block), Ok(true));
        for record in &block.records {
            assert_eq!(block.frame(record).len(), record.len as usize);
            assert_eq!(record.number, last + 1);
            last = record.number;
            let _ = block.comment(record);
            seen.push(outline(record));
        }
    }
    excerpts(file, piece, &seen);
    growing(file, piece, &seen);
}

/// Of a file that is still being written all whole records are read.
fn growing(file: &[u8], piece: usize, seen: &[(i64, u64, u32, u32)]) {
    let plain = open_compressed(Box::new(Cursor::new(file.to_vec())), Counter::default());
    let Ok(mut reader) = plain.map(|plain| Reader::new(plain, 0, piece).of_growing()) else {
        return;
    };
    let (mut block, mut records, mut more) = (Block::default(), Vec::new(), true);
    while more {
        let filled = reader.fill(&mut block);
        let cut = matches!(filled, Err(ReadError::Cut { .. } | ReadError::CutCompressed { .. }));
        assert!(!cut, "a part of a record is no error");
        more = matches!(filled, Ok(true));
        records.extend(block.records.iter().map(outline));
    }
    assert_eq!(records, seen);
}

/// Time, number, lengths of a record.
fn outline(record: &Record) -> (i64, u64, u32, u32) {
    (record.time_ns, record.number, record.len, record.wire_len)
}

/// The excerpt of a capture has its records; another one, with a byte changed, is read or refused.
fn excerpts(file: &[u8], piece: usize, seen: &[(i64, u64, u32, u32)]) {
    let mut excerpt = excerpt_of(file, true, piece);
    assert_eq!(records_of(excerpt.clone()), seen);
    let at = piece * 2_654_435 % excerpt.len();
    excerpt[at] ^= 0x55;
    records_of(excerpt);
}

fn excerpt_of(file: &[u8], icrc: bool, piece: usize) -> Vec<u8> {
    let plain = open_compressed(Box::new(Cursor::new(file.to_vec())), Counter::default());
    let mut excerpt = Vec::new();
    let written =
        plain.and_then(|plain| write_excerpt(plain, &mut excerpt, &Ports::default(), icrc, piece));
    assert!(written.is_ok());
    excerpt
}

fn records_of(excerpt: Vec<u8>) -> Vec<(i64, u64, u32, u32)> {
    let mut reader = ExcerptReader::new(Box::new(Cursor::new(excerpt)), 0);
    let mut block = Block::default();
    let mut seen = Vec::new();
    let mut more = true;
    while more {
        more = matches!(reader.fill(&mut block), Ok(true));
        for record in &block.records {
            assert_eq!(block.frame(record).len(), (record.len - record.elided) as usize);
            seen.push(outline(record));
        }
    }
    seen
}

/// Takes any bytes as a frame of any link type: decodes, calls every accessor, diagnoses the ICRC.
pub fn decoder(input: &[u8]) {
    let Some((&choice, frame)) = input.split_first() else { return };
    const LINKS: [u32; 16] = [1, 1, 113, 276, 101, 247, 0, 226, 192, 197, 239, 258, 147, 1, 1, 247];
    let link = Link::from_number(LINKS[usize::from(choice & 15)]);
    let len = frame.len() as u32;
    if let Some(found) = roce::unwrapped(link, frame, len) {
        assert!(found.offset + found.len <= frame.len());
    }
    // the other bits lengthen the frame on the wire, as if a snap length had cut it
    let wire_len = len + u32::from(choice >> 4) * 16;
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
    cache_hit(link, frame, &packet, at);
}

/// A frame that differs in one byte and hits the cache is judged as if it were decoded.
fn cache_hit(link: Link, frame: &[u8], packet: &Packet, at: usize) {
    let mut cache = HeaderCache::default();
    // only headers that come again are cached
    for _ in 0..2 {
        cache.insert(link, frame, packet, 0);
    }
    let mut other = frame.to_vec();
    other[at] ^= 0x55;
    for frame in [frame, &other] {
        let Some(hit) = cache.lookup(link, frame, packet.wire_len, true) else { continue };
        let decoded = decode(link, frame, packet.wire_len, &Ports::default());
        let Frame::Roce(decoded) = decoded else { panic!("{decoded:?} hits the cache as RoCE") };
        assert_eq!((hit.varying.psn, hit.varying.apsn), (decoded.psn, decoded.apsn));
        assert_eq!(hit.varying, Varying::of(&decoded, frame));
        assert_eq!(hit.icrc, icrc::check(&decoded, frame));
        let same = Packet { psn: decoded.psn, apsn: decoded.apsn, ..*packet };
        assert_eq!(format!("{same:?}"), format!("{decoded:?}"));
        let psn = hit.varying.psn.wrapping_sub(1);
        let previous = Hit { varying: Varying { psn, ..hit.varying }, ..hit };
        let frames = [(link, frame, packet.wire_len)].into_iter();
        let continues = cache.run(previous, frames, true) == 1;
        assert_eq!(continues, hit.icrc != roce::Icrc::Bad);
    }
}

/// Runs any bytes as a capture through the whole pipeline with tight limits.
pub fn tracker(file: &[u8]) {
    let Ok(plain) = open_compressed(Box::new(Cursor::new(file.to_vec())), Counter::default())
    else {
        return;
    };
    // the tracker takes another path if it keeps rows or verdicts
    let choice = file.last().copied().unwrap_or_default();
    let (rows_kept, keep_verdicts) = (choice & 1 != 0, choice & 2 != 0);
    let tracker = Config {
        max_live: 4,
        max_connections: 8,
        max_findings: 8,
        go_back_n: true,
        keep_messages: rows_kept,
        keep_verdicts,
        without_copies: choice & 4 != 0,
        follow_corrupt: choice & 8 != 0,
    };
    let options = Options {
        ports: vec![],
        // a fuzzer does not find correct ICRCs: if checked, few packets are followed
        icrc: choice & 32 != 0,
        threads: 1,
        read_ahead: false,
        packets: rows_kept,
        filter: Filter::default(),
        tracker,
        sort: true,
        offsets_ns: vec![],
        absence: (choice & 16 != 0).then_some(roce::icrc::Absence::LeftOut),
        looks: if choice & 4 != 0 { vec![(0, 2)] } else { vec![] },
    };
    let mut analyzer = Analyzer::new(vec![plain], options.clone());
    while analyzer.step() {}
    let rows = analyzer.finish();
    if choice & 8 != 0 && !rows_kept {
        followed_from_excerpt(file, options, &format!("{:?}{rows:?}", analyzer.totals));
    }
    assert!(rows.len() <= 8);
    for row in &rows {
        for stats in row.directions.iter().flatten() {
            assert!(stats.goodput_bytes <= stats.payload_bytes);
            assert!(stats.retransmitted + stats.messages <= stats.packets + stats.retransmitted);
        }
    }
    let totals = &analyzer.totals;
    let headers: u64 = totals.by_header().iter().map(|row| row.1).sum();
    assert_eq!(headers + totals.payload_bytes, totals.wire_bytes);
}

/// An excerpt gives the sums and connections of its capture.
fn followed_from_excerpt(file: &[u8], options: Options, found: &str) {
    let excerpt = excerpt_of(file, options.icrc, piece(1));
    let mut analyzer = Analyzer::of_excerpts(vec![Box::new(Cursor::new(excerpt))], options);
    while analyzer.step() {}
    let rows = analyzer.finish();
    assert_eq!(format!("{:?}{rows:?}", analyzer.totals), found);
}
