// SPDX-License-Identifier: GPL-2.0-or-later
//! Files of ERF records without a file header, as dagsnap writes them. They have no magic number: a file
//! is one if its first records could be nothing else.

use roce::{Link, erf_time_ns};

use super::parse_step::Step;
use super::read_error::ReadError;
use super::record_block::Record;

const HEADER: usize = 16;
/// So many records, one behind the other, are no coincidence.
const ENOUGH: usize = 4;
/// Cards fill up the space between records with such a record.
const PAD: u8 = 48;
const LAST_TYPE: u8 = 33;
/// 1990 and 2100, in seconds since 1970.
const YEARS: std::ops::Range<u64> = 631_152_000..4_102_444_800;
const DAY_NS: u64 = 86_400_000_000_000;

/// Whether a file is one of ERF records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guess {
    Yes,
    No,
    /// As many bytes are needed to tell.
    After(usize),
}

/// Guesses from the first bytes of a file, which may be all of it.
pub(super) fn guess(bytes: &[u8], all: bool) -> Guess {
    let (mut at, mut before) = (0, None);
    for count in 0..ENOUGH {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(header) = rest.first_chunk::<HEADER>() else {
            return match (all, count) {
                (false, _) => Guess::After(at + HEADER),
                (true, 0) => Guess::No,
                (true, 1) if at != bytes.len() => Guess::No,
                (true, _) => Guess::Yes,
            };
        };
        let Some(time_ns) = plausible(header) else { return Guess::No };
        if before.is_some_and(|before: i64| before.abs_diff(time_ns) > DAY_NS) {
            return Guess::No;
        }
        before = Some(time_ns);
        at += len(header);
    }
    Guess::Yes
}

/// The time of a record, if this may be its header.
fn plausible(header: &[u8; HEADER]) -> Option<i64> {
    let kind = kind(header);
    let known = (1..=LAST_TYPE).contains(&kind) || kind == PAD;
    let time_ns = erf_time_ns(header)?;
    let in_years = YEARS.contains(&(u64::try_from(time_ns).ok()? / 1_000_000_000));
    (known && in_years && len(header) >= HEADER).then_some(time_ns)
}

fn kind(header: &[u8; HEADER]) -> u8 {
    header[8] & 0x7f
}

/// Bytes of the record, with this header.
fn len(header: &[u8; HEADER]) -> usize {
    u16::from_be_bytes([header[10], header[11]]).into()
}

/// Takes the record at the start of `bytes`, which begin at offset `at` of the block.
pub(super) fn step(
    bytes: &[u8],
    at: usize,
    file: u16,
    packets: &mut u64,
    records: &mut Vec<Record>,
) -> Result<Step, ReadError> {
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Ok(Step::Need(HEADER)) };
    let len = len(header);
    if len < HEADER {
        let what = "an ERF record shorter than its header";
        return Err(ReadError::Corrupt { packet: *packets, what });
    }
    if bytes.len() < len {
        return Ok(Step::Need(len));
    }
    if kind(header) != PAD {
        *packets += 1;
        let record = Record {
            offset: at as u32,
            len: len as u32,
            wire_len: len as u32,
            file,
            link: Link::Erf,
            time_ns: erf_time_ns(header).unwrap_or(0),
            number: *packets,
            ..Record::PLAIN
        };
        records.push(record.unwrapped(bytes, at));
    }
    Ok(Step::Taken(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seconds: u32, kind: u8, len: u16) -> Vec<u8> {
        let mut record = (u64::from(seconds) << 32).to_le_bytes().to_vec();
        record.extend([kind, 4]);
        record.extend(len.to_be_bytes());
        record.extend([0, 0, 0, 20]);
        record.resize(len.into(), 0);
        record
    }

    #[test]
    fn records_are_recognised() {
        let file = [record(1_700_000_000, 21, 40), record(1_700_000_001, 2, 50)].concat();
        assert_eq!(guess(&file, true), Guess::Yes);
        // more may follow
        assert_eq!(guess(&file, false), Guess::After(106));
        assert_eq!(guess(&file[..10], false), Guess::After(16));
        // one record must be the whole file, of two the last may be cut
        assert_eq!(guess(&file[..40], true), Guess::Yes);
        assert_eq!(guess(&file[..39], true), Guess::No);
        assert_eq!(guess(&file[..41], true), Guess::No);
        assert_eq!(guess(&file[..80], true), Guess::Yes);
        assert_eq!(guess(&file.repeat(2)[..150], false), Guess::Yes);
    }

    #[test]
    fn other_files_are_not() {
        let good = record(1_700_000_000, 21, 40);
        for bad in [
            record(1_700_100_000, 21, 40),
            record(1, 21, 40),
            record(1_700_000_000, 0, 40),
            record(1_700_000_000, 40, 40),
            vec![0; 40],
        ] {
            assert_eq!(guess(&[good.clone(), bad].concat(), true), Guess::No);
        }
        assert_eq!(guess(b"", true), Guess::No);
        assert_eq!(guess(&b"no capture, but text of some length".repeat(9), true), Guess::No);
    }
}
