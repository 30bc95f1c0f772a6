// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes capture files in memory, from the formats' drafts.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use std::io::Cursor;

use engine::read::{Block, Input, ReadError, Reader};
use rc_simulator::frame::opcode::{ACKNOWLEDGE, WRITE_ONLY};
use rc_simulator::frame::{ACK, Host, Transport, ethernet};

pub const START_NS: i64 = 1_700_000_000_000_000_000;
pub const A: Host = Host::new(1);
pub const B: Host = Host::new(2);

/// A frame to be written, and its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    pub time_ns: i64,
    pub frame: Vec<u8>,
    pub comment: Option<String>,
}

/// Frames without comments, 1 µs apart.
pub fn each_microsecond(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Captured> {
    let captured = |(at, frame)| Captured { time_ns: START_NS + at * 1000, frame, comment: None };
    (0_i64..).zip(frames).map(captured).collect()
}

/// A WRITE of 64 bytes from A to B.
pub fn write(psn: u32) -> Vec<u8> {
    let packet = Transport::new(WRITE_ONLY, 18, psn).reth(0, 1, 64).payload(64).ack_req();
    ethernet(A, B, psn as u16, &packet)
}

/// B's response to A.
pub fn acknowledge(psn: u32, syndrome: u8, msn: u32) -> Vec<u8> {
    ethernet(B, A, psn as u16, &Transport::new(ACKNOWLEDGE, 17, psn).aeth(syndrome, msn))
}

/// WRITEs and their ACKs.
pub fn writes(psns: impl IntoIterator<Item = u32>) -> Vec<Captured> {
    let pair = |(msn, psn)| [write(psn), acknowledge(psn, ACK, msn)];
    each_microsecond((1..).zip(psns).flat_map(pair))
}

/// Byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    Little,
    Big,
}

impl Endian {
    pub fn u16(self, number: u16) -> [u8; 2] {
        if self == Self::Big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    pub fn u32(self, number: u32) -> [u8; 4] {
        if self == Self::Big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    pub fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = [self.u16(code), self.u16(value.len() as u16)].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    pub fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let len = self.u32(body.len() as u32 + 12);
        [&self.u32(kind), &len, body, &len].concat()
    }

    pub fn section(self, options: &[u8]) -> Vec<u8> {
        let version = [self.u16(1), self.u16(0)].concat();
        self.block(
            0x0a0d_0d0a,
            &[&self.u32(0x1a2b_3c4d), &version[..], &[0xff; 8], options].concat(),
        )
    }

    /// An Ethernet interface.
    pub fn interface(self, options: &[u8]) -> Vec<u8> {
        self.block(1, &[&self.u16(1), &self.u16(0)[..], &self.u32(0), options].concat())
    }

    /// An enhanced packet of the first interface.
    pub fn packet(self, ticks: u64, frame: &[u8], comment: Option<&str>) -> Vec<u8> {
        let len = self.u32(frame.len() as u32);
        let time = [self.u32((ticks >> 32) as u32), self.u32(ticks as u32)].concat();
        let mut body = [&self.u32(0), &time[..], &len, &len, frame].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        if let Some(comment) = comment {
            body.extend(self.option(1, comment.as_bytes()));
            body.extend([0; 4]);
        }
        self.block(6, &body)
    }
}

/// Unit of a file's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Micro,
    Nano,
}

/// A pcap file; it has no comments.
pub fn pcap(captured: &[Captured], endian: Endian, unit: Unit) -> Vec<u8> {
    let (magic, ns) = if unit == Unit::Nano { (0xa1b2_3c4d, 1) } else { (0xa1b2_c3d4_u32, 1000) };
    let mut file = [magic, 0, 0, 0, 1 << 18, 1].map(|word| endian.u32(word)).concat();
    file[4..8].copy_from_slice(&[endian.u16(2), endian.u16(4)].concat());
    for Captured { time_ns, frame, .. } in captured {
        let (seconds, fraction) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000 / ns);
        let len = frame.len() as u32;
        file.extend(
            [seconds as u32, fraction as u32, len, len].map(|word| endian.u32(word)).concat(),
        );
        file.extend(frame);
    }
    file
}

/// A pcapng file with times in nanoseconds.
pub fn pcapng(captured: &[Captured], endian: Endian) -> Vec<u8> {
    let mut file = [endian.section(&[]), endian.interface(&endian.option(9, &[9]))].concat();
    for Captured { time_ns, frame, comment } in captured {
        file.extend(endian.packet(*time_ns as u64, frame, comment.as_deref()));
    }
    file
}

pub fn input(bytes: Vec<u8>) -> Input {
    Box::new(Cursor::new(bytes))
}

/// Every frame of a file that is read in pieces of `piece` bytes, and the error that ends it.
pub fn read_all(input: Input, piece: usize) -> (Vec<Captured>, Option<ReadError>) {
    let mut reader = Reader::new(input, 0, piece);
    let (mut frames, mut block, mut error) = (Vec::new(), Block::default(), None);
    loop {
        let more = reader.fill(&mut block).unwrap_or_else(|failed| {
            error = Some(failed);
            true
        });
        if !more {
            return (frames, error);
        }
        for record in &block.records {
            assert_eq!(record.number, frames.len() as u64 + 1, "frames are numbered from 1");
            let comment = block.comment(record).map(|text| String::from_utf8_lossy(text).into());
            let frame = block.frame(record).to_vec();
            frames.push(Captured { time_ns: record.time_ns, frame, comment });
        }
    }
}
