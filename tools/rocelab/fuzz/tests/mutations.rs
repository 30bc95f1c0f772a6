// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs the fuzz targets over seeded mutations of the corpus, the same every time, on any compiler.
//!
//! No coverage guides them, so they do not replace `run`. ROCELAB_MUTATIONS multiplies their number.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Lengths and counts at which code tends to be wrong.
const NUMBERS: [u32; 10] = [0, 1, 4, 12, 20, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_fff0];

fn mutate(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(6) {
        let at = random.below(input.len());
        match random.below(7) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.next() as u8,
            2 => {
                let number = NUMBERS[random.below(NUMBERS.len())];
                let raw =
                    if random.below(2) == 0 { number.to_le_bytes() } else { number.to_be_bytes() };
                let width = 1 << random.below(3);
                for (to, from) in input.iter_mut().skip(at).zip(&raw[..width]) {
                    *to = *from;
                }
            }
            3 => input.truncate(at),
            4 => {
                let end = (at + random.below(64)).min(input.len());
                input.drain(at..end);
            }
            5 => {
                let end = (at + random.below(256)).min(input.len());
                let piece = input[at..end].to_vec();
                let to = random.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            _ => {
                let from = random.below(other.len());
                let end = (from + random.below(256)).min(other.len());
                input.splice(at..at, other[from..end].iter().copied());
            }
        }
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../captures");
    let entries = fs::read_dir(folder).expect("captures/ lies in this repository");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let wanted = ["pcap", "pcapng", "gz"];
    paths.retain(|path| {
        path.extension().and_then(|name| name.to_str()).is_some_and(|name| wanted.contains(&name))
    });
    let samples: Vec<_> = paths.iter().map(|path| fs::read(path).expect("a sample")).collect();
    assert!(samples.len() > 40, "the corpus is not where it should be");
    samples
}

fn run(name: &str, target: fn(&[u8]), seeds: &[Vec<u8>], count: usize) {
    let factor = std::env::var("ROCELAB_MUTATIONS").ok().and_then(|text| text.parse().ok());
    let mut random = Random(0x0c0d_e5ee_d000 ^ name.len() as u64);
    for _ in 0..count * factor.unwrap_or(1) {
        let mut input = seeds[random.below(seeds.len())].clone();
        let other = &seeds[random.below(seeds.len())];
        mutate(&mut random, &mut input, other);
        if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
            let path = std::env::temp_dir().join(format!("rocelab-{name}-failure"));
            fs::write(&path, &input).expect("the failing input can be kept");
            panic!("{name}: the input is kept in {}", path.display());
        }
    }
}

#[test]
fn readers() {
    let with_piece = |(index, sample): (usize, &Vec<u8>)| {
        let piece = [255, 0, 15, 63][index % 4];
        [&[piece], &sample[..]].concat()
    };
    let seeds: Vec<_> = corpus().iter().enumerate().map(with_piece).collect();
    run("readers", rocelab_fuzz::readers, &seeds, 20_000);
}

#[test]
fn decoder() {
    // the first byte is the link type; the first frame follows the two headers of a pcap
    let frame = |(index, sample): (usize, &Vec<u8>)| {
        let link = [0, 5][index % 2];
        [&[link], sample.get(40..).unwrap_or_default()].concat()
    };
    let twice = corpus().into_iter().flat_map(|sample| [sample.clone(), sample]);
    let samples: Vec<_> = twice.collect();
    let seeds: Vec<_> =
        samples.iter().enumerate().map(frame).filter(|seed| seed.len() > 1).collect();
    run("decoder", rocelab_fuzz::decoder, &seeds, 100_000);
}

#[test]
fn fragments() {
    // each record of a pcap has its length in a byte before a frame of up to 255 bytes
    let records = |sample: &Vec<u8>| {
        let mut seed = Vec::new();
        let mut rest = sample.get(24..).unwrap_or_default();
        while let Some((head, behind)) = rest.split_first_chunk::<16>() {
            let len = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
            let (frame, next) = behind.split_at(len.min(behind.len()));
            let kept = frame.len().min(255);
            seed.push(kept as u8);
            seed.extend(&frame[..kept]);
            rest = next;
        }
        seed
    };
    let seeds: Vec<_> = corpus().iter().map(records).filter(|seed| seed.len() > 16).collect();
    run("fragments", rocelab_fuzz::fragments, &seeds, 30_000);
}

#[test]
fn tracker() {
    run("tracker", rocelab_fuzz::tracker, &corpus(), 10_000);
}
