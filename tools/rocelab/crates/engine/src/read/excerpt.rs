// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes an excerpt of a capture: what following its connections needs, without payloads whose ICRCs
//! were found to be correct. Whoever reads it gets the blocks and records that the capture gives.
//!
//! An excerpt is [`MAGIC`], then blocks; numbers are little-endian. A block is three numbers of 32 bits
//! (its records, their bytes, the bytes of a text), the records, and the text, which says what is wrong
//! with the capture from there on. The last block is empty. A record is [`RECORD`] bytes, and the bytes
//! of the frame that were kept:
//!
//! | bytes | |
//! |---|---|
//! | 8 | time, ns since 1970 |
//! | 8 | frame number |
//! | 4, 4 | bytes captured, bytes on the wire |
//! | 4, 4 | bytes kept of the frame's start, and of its end |
//! | 4 | link type, from 0x10000 on one that is not read |
//! | 4 | 1: the ICRC is correct |
//! | 4 | the interface of a file that has several, from 1; else 0 |

use std::io::{self, Write};

use roce::icrc::Verifier;
use roce::opcode::Service;
use roce::{Icrc, Kind, Link, Packet, Ports, decode_into};

use super::decompress::Input;
use super::reader::Reader;
use super::record_block::{Block, Record};

/// The first bytes; another version of the format has others.
pub(super) const MAGIC: &[u8; 16] = b"rocelab-excerpt2";
/// Bytes of a record before those of its frame.
pub(super) const RECORD: usize = 44;
const UNREAD: u32 = 0x1_0000;
/// Payloads of fewer bytes are kept: a record is not much shorter without them.
const SHORT: u32 = 64;

/// Reads a capture, `piece` bytes at a time, and writes its excerpt. ICRCs are verified if `icrc` is
/// set; the excerpt then must be analysed with ICRCs, else without.
///
/// # Errors
/// If the excerpt cannot be written. What is wrong with the capture is in the excerpt.
pub fn write_excerpt(
    input: Input,
    output: &mut impl Write,
    ports: &Ports,
    icrc: bool,
    piece: usize,
) -> io::Result<()> {
    let mut reader = Reader::new(input, 0, piece);
    let mut block = Block::default();
    let mut excerpt = Excerpt { ports, icrc, verifier: Verifier::default(), body: Vec::new() };
    output.write_all(MAGIC)?;
    loop {
        let wrong = match reader.fill(&mut block) {
            // a signal; an empty block is the end
            Ok(true) if block.records.is_empty() => continue,
            Ok(true) => String::new(),
            Ok(false) => return output.write_all(&[0; 12]),
            Err(error) => error.to_string(),
        };
        excerpt.body.clear();
        for record in &block.records {
            excerpt.add(record, block.frame(record));
        }
        for len in [block.records.len(), excerpt.body.len(), wrong.len()] {
            output.write_all(&u32::try_from(len).map_err(io::Error::other)?.to_le_bytes())?;
        }
        output.write_all(&excerpt.body)?;
        output.write_all(wrong.as_bytes())?;
    }
}

struct Excerpt<'a> {
    ports: &'a Ports,
    icrc: bool,
    verifier: Verifier,
    /// The records of a block.
    body: Vec<u8>,
}

impl Excerpt<'_> {
    fn add(&mut self, record: &Record, frame: &[u8]) {
        let mut packet = Packet::default();
        let kind = decode_into(record.link, frame, record.wire_len, self.ports, &mut packet);
        let verified =
            kind == Kind::Roce && self.icrc && self.verifier.check(&packet, frame) == Icrc::Ok;
        let (start, end) = match kind {
            // the analysis needs nothing of it
            Kind::Other => (&frame[..0], &frame[..0]),
            // a header that was sampled is found again in its whole datagram only
            Kind::Roce if packet.wire_len != record.wire_len => (frame, &frame[..0]),
            Kind::Roce if verified || !self.icrc => without_payload(&packet, frame),
            _ => (frame, &frame[..0]),
        };
        let body = &mut self.body;
        body.extend(record.time_ns.to_le_bytes());
        body.extend(record.number.to_le_bytes());
        for number in [
            record.len,
            record.wire_len,
            start.len() as u32,
            end.len() as u32,
            link_number(record.link),
            u32::from(verified),
            record.interface,
        ] {
            body.extend(number.to_le_bytes());
        }
        body.extend(start);
        body.extend(end);
    }
}

/// The link type in a record: that of a frame in ERF which is not read has ERF's own number.
fn link_number(link: Link) -> u32 {
    match link {
        Link::Other(number) => UNREAD + u32::from(number),
        _ => link.number().into(),
    }
}

/// The inverse of [`link_number`].
pub(super) fn link_of(number: u32) -> Link {
    match number.checked_sub(UNREAD) {
        Some(number) => Link::Other(number as u16),
        None => Link::from_number(number),
    }
}

/// What is before and behind the payload. Datagrams stay whole: they may be the CM's.
fn without_payload<'a>(packet: &Packet, frame: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    let from = packet.payload_off as usize;
    let to = from + packet.payload_len as usize;
    let connected = packet.op().is_some_and(|op| op.service() != Service::Ud);
    if packet.payload_len < SHORT || !connected || to > frame.len() {
        return (frame, &frame[..0]);
    }
    (&frame[..from], &frame[to..])
}
