// SPDX-License-Identifier: GPL-2.0-or-later
//! Capture files, whole, cut and corrupt, are read to their last whole frame.

mod support;

use std::io::{Cursor, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use engine::read::{
    Block, BlockSource, Counter, Input, Merge, Opener, ReadError, Reader, Sorted, Unchanged,
    open_compressed,
};
use support::{
    Captured, Endian, START_NS, Unit, each_microsecond, input, pcap, pcapng, read_all, write,
    writes,
};

const PIECE: usize = 4096;

fn frames() -> Vec<Captured> {
    writes(0..20)
}

fn commented() -> Vec<Captured> {
    let mut frames = frames();
    frames[3].comment = Some("a note".to_owned());
    frames[8].comment = Some("four".to_owned());
    frames
}

#[test]
fn pcap_in_either_byte_order_and_unit() {
    for endian in [Endian::Little, Endian::Big] {
        for unit in [Unit::Micro, Unit::Nano] {
            let (read, error) = read_all(input(pcap(&frames(), endian, unit)), PIECE);
            assert!(error.is_none(), "{endian:?} {unit:?}: {error:?}");
            assert_eq!(read, frames(), "{endian:?} {unit:?}");
        }
    }
}

#[test]
fn pcapng_in_either_byte_order() {
    for endian in [Endian::Little, Endian::Big] {
        let (read, error) = read_all(input(pcapng(&commented(), endian)), PIECE);
        assert!(error.is_none(), "{endian:?}: {error:?}");
        assert_eq!(read, commented(), "{endian:?}");
    }
}

#[test]
fn the_size_of_the_pieces_changes_nothing() {
    for file in [pcap(&frames(), Endian::Little, Unit::Nano), pcapng(&frames(), Endian::Little)] {
        for piece in [1, 7, 64, 1 << 20] {
            let (read, error) = read_all(input(file.clone()), piece);
            assert!(error.is_none() && read == frames(), "pieces of {piece} bytes: {error:?}");
        }
    }
}

#[test]
fn a_pipe_may_deliver_a_few_bytes_at_a_time() {
    let (mut to, from) = UnixStream::pair().unwrap();
    let writer = thread::spawn(move || {
        for part in pcapng(&commented(), Endian::Big).chunks(11) {
            to.write_all(part).unwrap();
        }
    });
    let plain = open_compressed(Box::new(from), Counter::default()).unwrap();
    let (read, error) = read_all(plain, PIECE);
    writer.join().unwrap();
    assert!(error.is_none() && read == commented(), "{error:?}");
}

#[test]
fn compression_is_recognised_by_its_magic() {
    let plain = pcapng(&frames(), Endian::Little);
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let (first, second) = plain.split_at(plain.len() / 2);
    let files = [
        ("none", plain.clone()),
        ("gzip", gzip(&plain)),
        ("gzip in two members", [gzip(first), gzip(second)].concat()),
        ("zstd", zstd::encode_all(&plain[..], 1).unwrap()),
    ];
    for (name, file) in files {
        let (taken, len) = (Counter::default(), file.len() as u64);
        let opened = open_compressed(input(file), Arc::clone(&taken)).unwrap();
        let (read, error) = read_all(opened, PIECE);
        assert!(error.is_none() && read == frames(), "{name}: {error:?}");
        assert_eq!(taken.load(Ordering::Relaxed), len, "{name}: bytes of the file");
    }
}

#[test]
fn a_compressed_file_that_ends_early_is_told_and_gives_its_first_frames() {
    let plain = pcapng(&writes(0..200), Endian::Little);
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let lz4 = lz4(&plain);
    for (name, file) in
        [("gzip", gzip), ("zstd", zstd::encode_all(&plain[..], 1).unwrap()), ("lz4", lz4)]
    {
        let whole =
            read_all(open_compressed(input(file.clone()), Counter::default()).unwrap(), PIECE);
        assert!(whole.1.is_none() && whole.0 == writes(0..200), "{name}: {:?}", whole.1);
        for missing in (1..=12).chain([file.len() / 2]) {
            let cut = file[..file.len() - missing].to_vec();
            let (read, error) =
                read_all(open_compressed(input(cut), Counter::default()).unwrap(), PIECE);
            let told = matches!(error, Some(ReadError::CutCompressed { .. }));
            assert!(told, "{name} without its last {missing} bytes: {error:?}");
            assert_eq!(read, writes(0..200)[..read.len()]);
        }
    }
}

#[test]
fn every_frame_of_an_lz4_file_is_read() {
    let plain = pcapng(&frames(), Endian::Little);
    let (first, second) = plain.split_at(plain.len() / 2);
    let file = [lz4(first), lz4(second)].concat();
    let (read, error) = read_all(open_compressed(input(file), Counter::default()).unwrap(), PIECE);
    assert!(error.is_none() && read == frames(), "{error:?}");
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Offsets after the header and after each frame of a file.
fn ends(file: impl Fn(&[Captured]) -> Vec<u8>) -> Vec<usize> {
    (0..=frames().len()).map(|count| file(&frames()[..count]).len()).collect()
}

#[test]
fn a_cut_file_gives_every_whole_frame() {
    let as_pcap = |frames: &[Captured]| pcap(frames, Endian::Little, Unit::Nano);
    let as_pcapng = |frames: &[Captured]| pcapng(frames, Endian::Big);
    for (file, ends) in
        [(as_pcap(&frames()), ends(as_pcap)), (as_pcapng(&frames()), ends(as_pcapng))]
    {
        for len in (0..file.len()).step_by(5).chain(ends.iter().copied()) {
            let (read, error) = read_all(input(file[..len].to_vec()), PIECE);
            let whole = ends.iter().filter(|end| **end <= len).count().saturating_sub(1);
            assert_eq!(read, frames()[..whole], "{len} bytes");
            match error {
                None => assert!(ends.contains(&len) || whole == 0, "{len} bytes: no error"),
                Some(ReadError::Cut { packet }) => assert_eq!(packet, whole as u64, "{len} bytes"),
                Some(ReadError::Empty) => assert_eq!(whole, 0, "{len} bytes"),
                Some(error) => panic!("{len} bytes: {error}"),
            }
        }
    }
}

#[test]
fn other_files_are_refused() {
    let (read, error) =
        read_all(input(b"not a capture, but long enough to be one".to_vec()), PIECE);
    assert!(read.is_empty());
    assert!(matches!(error, Some(ReadError::Unknown(magic)) if &magic == b"not "), "{error:?}");
    let (_, error) = read_all(input(Vec::new()), PIECE);
    assert!(matches!(error, Some(ReadError::Empty)), "{error:?}");
}

#[test]
fn a_corrupt_block_ends_the_file_after_the_last_good_frame() {
    let endian = Endian::Little;
    let good = pcapng(&frames()[..2], endian);
    let too_long = endian.packet(0, &write(9), None);
    let at = 8 + 12;
    let too_long = [&too_long[..at], &endian.u32(1 << 12), &too_long[at + 4..]].concat();
    let unknown_interface = endian.block(6, &[endian.u32(3).to_vec(), vec![0; 16]].concat());
    let corrupt = [
        ("a length that is no multiple of 4", [endian.u32(6), endian.u32(33)].concat()),
        ("a length below 12", [endian.u32(6), endian.u32(8)].concat()),
        ("over 16 MiB", [endian.u32(6), endian.u32(0xffff_fff0)].concat()),
        ("a packet longer than its block", too_long),
        ("an interface that is not described", unknown_interface),
        ("a section without magic", endian.block(0x0a0d_0d0a, &[0; 16])),
    ];
    for (name, bytes) in corrupt {
        let file = [good.clone(), bytes, endian.packet(0, &write(1), None)].concat();
        let (read, error) = read_all(input(file), PIECE);
        assert_eq!(read, frames()[..2], "{name}");
        assert!(matches!(error, Some(ReadError::Corrupt { packet: 2, .. })), "{name}: {error:?}");
    }
}

#[test]
fn interfaces_choose_the_resolution_of_times() {
    let endian = Endian::Big;
    let second = 1 << 31;
    let cases: [(&[u8], i64, u64, i64); 5] = [
        (&[], 0, 1_500_000, 1_500_000_000),
        (&[9], 0, 1_500_000_000, 1_500_000_000),
        (&[3], 0, 1500, 1_500_000_000),
        (&[0x80 | 31], 0, second + second / 2, 1_500_000_000),
        (&[12], 7, 1_500_000_000_999, 8_500_000_000),
    ];
    for (resolution, offset, ticks, expected) in cases {
        let mut options = Vec::new();
        if !resolution.is_empty() {
            options.extend(endian.option(9, resolution));
        }
        if offset > 0 {
            options.extend(endian.option(14, &offset.to_be_bytes()));
        }
        let packet = endian.packet(ticks, &write(1), None);
        let file = [endian.section(&[]), endian.interface(&options), packet].concat();
        let (read, error) = read_all(input(file), PIECE);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(read[0].time_ns, expected, "if_tsresol {resolution:x?}");
    }
}

#[test]
fn each_section_has_its_own_byte_order_and_interfaces() {
    let (first, second) = (commented(), writes(50..60));
    let file = [pcapng(&first, Endian::Little), pcapng(&second, Endian::Big)].concat();
    let (read, error) = read_all(input(file), PIECE);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(read, [first, second].concat());
}

#[test]
fn unknown_blocks_are_skipped_and_simple_packets_take_the_previous_time() {
    let endian = Endian::Little;
    let mut file = pcapng(&frames()[..1], endian);
    // larger than a piece
    file.extend(endian.block(0xbad, &[7; 3 * PIECE]));
    let frame = write(5);
    let mut body = endian.u32(frame.len() as u32).to_vec();
    body.extend(&frame);
    body.resize(body.len().next_multiple_of(4), 0);
    file.extend(endian.block(3, &body));
    let (read, error) = read_all(input(file), PIECE);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(read[1], Captured { time_ns: START_NS, frame, comment: None });
}

/// File, frame number and time of a record.
type Place = (u16, u64, i64);

fn merged(files: Vec<Input>) -> (Vec<Place>, Vec<(u16, ReadError)>) {
    let readers = (0..).zip(files).map(|(file, input)| {
        let source = BlockSource::Capture(Reader::new(input, file, 512));
        Sorted::new(source, 0, false)
    });
    let mut merge = Merge::new(readers.collect(), 700);
    let (mut order, mut block) = (Vec::new(), Block::default());
    while merge.fill(&mut block) {
        order.extend(block.records.iter().map(|one| (one.file, one.number, one.time_ns)));
    }
    (order, merge.errors)
}

#[test]
fn files_are_merged_by_time_and_equal_times_by_file() {
    let frames = each_microsecond((0..30).map(write));
    let odd: Vec<Captured> = frames.iter().skip(1).step_by(2).cloned().collect();
    let even: Vec<Captured> = frames.iter().step_by(2).cloned().collect();
    let file = |frames: &[Captured]| input(pcap(frames, Endian::Big, Unit::Nano));
    let (order, errors) = merged(vec![file(&odd), file(&even), file(&odd)]);
    assert!(errors.is_empty(), "{errors:?}");
    let expected: Vec<Place> = (0..30)
        .flat_map(|at| {
            let row = move |file| (file, at / 2 + 1, START_NS + at as i64 * 1000);
            if at % 2 == 0 { vec![row(1)] } else { vec![row(0), row(2)] }
        })
        .collect();
    assert_eq!(order, expected);
}

#[test]
fn parts_are_open_only_while_their_time_has_come() {
    let frames = each_microsecond((0..40).map(write));
    let open = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    // of the last two, one begins before the other ends
    let later: Vec<Captured> = frames.iter().skip(35).cloned().collect();
    let parts: Vec<Vec<Captured>> =
        frames.chunks(10).map(<[_]>::to_vec).chain([later]).rev().collect();
    let openers = (0..).zip(parts.clone()).map(|(file, part)| -> Opener {
        let (open, most) = (Arc::clone(&open), Arc::clone(&most));
        Box::new(move || {
            let now = open.fetch_add(1, Ordering::Relaxed) + 1;
            most.fetch_max(now, Ordering::Relaxed);
            let bytes = Cursor::new(pcap(&part, Endian::Little, Unit::Nano));
            let input = Box::new(Counted { bytes, open: Arc::clone(&open) });
            let source = BlockSource::Capture(Reader::new(input, file, 64));
            Ok(Sorted::new(source, 0, true))
        })
    });
    let mut merge = Merge::of_parts(openers.collect(), 700);
    let (mut order, mut block) = (Vec::new(), Block::default());
    while merge.fill(&mut block) {
        order.extend(block.records.iter().map(|one| (one.file, one.number, one.time_ns)));
    }
    let files = parts.iter().map(|part| input(pcap(part, Endian::Little, Unit::Nano)));
    assert_eq!(order, merged(files.collect()).0);
    assert_eq!(order.len(), 45);
    assert_eq!(most.load(Ordering::Relaxed), 2);
    assert_eq!(open.load(Ordering::Relaxed), 0);
    assert_eq!(merge.spans_ns().filter(Option::is_some).count(), 5);
}

/// Knows how many files are open.
struct Counted {
    bytes: Cursor<Vec<u8>>,
    open: Arc<AtomicUsize>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.bytes.read(buffer)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_file_that_is_overwritten_gives_nothing_of_the_new_one() {
    let path = std::env::temp_dir().join(format!("rocelab-unchanged-{}", std::process::id()));
    let old = pcap(&frames(), Endian::Little, Unit::Nano);
    let new = pcap(&each_microsecond((90..95).map(write)), Endian::Little, Unit::Nano);
    for (bytes, is_old) in [(&old[..], true), (&new[..], false), (&old[..40], false)] {
        std::fs::write(&path, &old).unwrap();
        let mut file = Unchanged::new(std::fs::File::open(&path).unwrap(), old[..100].to_vec());
        let mut piece = [0; 100];
        assert_eq!(file.read(&mut piece).unwrap(), 100);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(file.read(&mut piece).is_ok(), is_old);
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_broken_file_does_not_stop_the_merge() {
    let file = pcap(&frames(), Endian::Little, Unit::Nano);
    let cut = file[..file.len() - 3].to_vec();
    let (order, errors) = merged(vec![input(cut), input(file), input(b"no".to_vec())]);
    assert_eq!(order.len(), 2 * frames().len() - 1);
    let mut failed: Vec<u16> = errors.iter().map(|(file, _)| *file).collect();
    failed.sort_unstable();
    assert_eq!(failed, [0, 2]);
}

/// Fails after its bytes are read, as a file on a lost network share does.
struct Failing(Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(std::io::Error::from_raw_os_error(5)),
            count => Ok(count),
        }
    }
}

#[test]
fn an_error_of_the_system_keeps_the_frames_before_it() {
    let file = pcap(&frames(), Endian::Little, Unit::Nano);
    for piece in [100, 1 << 16] {
        let failing = Failing(Cursor::new(file[..file.len() - 3].to_vec()));
        let (read, error) = read_all(Box::new(failing), piece);
        assert!(matches!(error, Some(ReadError::Io(error)) if error.raw_os_error() == Some(5)));
        assert_eq!(read.len(), frames().len() - 1, "pieces of {piece} bytes");
    }
}
