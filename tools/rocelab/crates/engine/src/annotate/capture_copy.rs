// SPDX-License-Identifier: GPL-2.0-or-later
//! Copies a capture block by block and adds comments to its packets.
//!
//! Other blocks are copied unchanged; large ones are not held in memory.

use std::fmt;
use std::io::{self, BufReader, Read, Write};

use super::packet_block::{Order, section_with_comment, with_comments};
use crate::read::Input;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET_OBSOLETE: u32 = 2;
const PACKET_SIMPLE: u32 = 3;
const PACKET_ENHANCED: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const OPT_COMMENT: u16 = 1;
const OPT_USERAPPL: u16 = 4;
const OPT_TSRESOL: u16 = 9;
const OPT_FCSLEN: u16 = 13;
/// The shortest section header: type, lengths, byte-order magic, version and section length.
const SECTION_FIXED: usize = 28;
/// The reader's limit.
const MAX_PACKET: u32 = (16 << 20) + (1 << 16);
const PCAP_HEADER: usize = 24;
const PCAP_RECORD: usize = 16;
const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;
/// Of tcpdump of old Red Hat systems, whose records have eight more bytes in their headers.
const KUZNETZOV: u32 = 0xa1b2_cd34;
const KUZNETZOV_EXTRA: usize = 8;
const BUFFER: usize = 1 << 18;

/// Why a copy ends before its input.
#[derive(Debug)]
pub enum CopyError {
    /// Reading failed.
    Read(io::Error),
    /// Writing failed: the output is unusable.
    Write(io::Error),
    /// The input ends within a block, after this many packets.
    Cut(u64),
    /// The input is corrupt after this many packets.
    Corrupt(u64, &'static str),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) | Self::Write(error) => write!(f, "{error}"),
            Self::Cut(packet) => write!(f, "ends within a block, after packet {packet}"),
            Self::Corrupt(packet, what) => write!(f, "corrupt after packet {packet}: {what}"),
        }
    }
}

/// What pcap files differ in.
#[derive(Clone, Copy, Debug)]
struct PcapForm {
    /// Ticks of the clock in a second.
    unit: u64,
    /// Bytes of a record's header.
    head: usize,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Unknown,
    PcapNg(Order),
    Pcap(Order, PcapForm),
}

/// A copy in progress.
pub struct Copier<W> {
    input: BufReader<Input>,
    output: W,
    format: Format,
    /// The comment on the whole capture, until the first section header has it.
    comment: Option<String>,
    ended: bool,
    /// Packets copied.
    pub packets: u64,
    /// Packets with an added comment.
    pub commented: u64,
    /// Packets whose comments could not be added: simple packet blocks, malformed options.
    pub bare: u64,
}

/// A packet's comments, by its frame number.
pub(super) type Comments<'a> = &'a mut dyn FnMut(u64) -> Vec<String>;

impl<W: Write> Copier<W> {
    /// Copies plain (decompressed) bytes, with `comment` in the first section header.
    #[must_use]
    pub fn new(input: Input, output: W, comment: Option<String>) -> Self {
        Self {
            input: BufReader::with_capacity(BUFFER, input),
            output,
            format: Format::Unknown,
            comment,
            ended: false,
            packets: 0,
            commented: 0,
            bare: 0,
        }
    }

    /// Continues until `packets` packets are copied; `u64::MAX` copies all.
    ///
    /// # Errors
    /// All whole blocks before the error are copied. The next call copies nothing.
    pub fn copy(&mut self, packets: u64, comments: Comments<'_>) -> Result<(), CopyError> {
        while !self.ended && self.packets < packets {
            let more = match self.format {
                Format::Unknown => self.begin(),
                Format::PcapNg(order) => self.block(order, comments),
                Format::Pcap(order, form) => self.record(order, form, comments),
            };
            match more {
                Ok(more) => self.ended = !more,
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Writes buffered output.
    ///
    /// # Errors
    /// If writing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Appends up to `len` bytes to `to`.
    fn read(&mut self, len: usize, to: &mut Vec<u8>) -> Result<usize, CopyError> {
        let done = self.input.by_ref().take(len as u64).read_to_end(to);
        match done {
            // a compressed file that ends early is good up to there
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Err(CopyError::Read(error))
            }
            Err(_) => Ok(0),
            Ok(count) => Ok(count),
        }
    }

    /// Appends `len` bytes to `to`; `false` at the end of the input.
    fn need(&mut self, len: usize, to: &mut Vec<u8>) -> Result<bool, CopyError> {
        let had = to.len();
        self.read(len, to)?;
        match to.len() - had {
            count if count == len => Ok(true),
            0 if had == 0 => Ok(false),
            _ => Err(CopyError::Cut(self.packets)),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CopyError> {
        self.output.write_all(bytes).map_err(CopyError::Write)
    }

    fn corrupt<T>(&self, what: &'static str) -> Result<T, CopyError> {
        Err(CopyError::Corrupt(self.packets, what))
    }

    fn begin(&mut self) -> Result<bool, CopyError> {
        let mut head = Vec::new();
        if !self.need(4, &mut head)? {
            return Ok(false);
        }
        let order = Order { big: false };
        let magic = order.u32(&head, 0).unwrap_or_default();
        if magic == SECTION {
            self.format = Format::PcapNg(order);
            return self.section(head);
        }
        for big in [false, true] {
            let order = Order { big };
            let (unit, extra) = match order.u32(&head, 0) {
                Some(MICRO) => (1_000_000, 0),
                Some(NANO) => (1_000_000_000, 0),
                Some(KUZNETZOV) => (1_000_000, KUZNETZOV_EXTRA),
                _ => continue,
            };
            self.need(PCAP_HEADER - 4, &mut head)?;
            self.format = Format::Pcap(order, PcapForm { unit, head: PCAP_RECORD + extra });
            return self.describe(order, unit, &head);
        }
        self.corrupt("neither pcap nor pcapng")
    }

    /// Writes a section and an interface in place of a pcap header.
    fn describe(&mut self, from: Order, unit: u64, head: &[u8]) -> Result<bool, CopyError> {
        let order = Order { big: false };
        let mut section = Vec::new();
        order.put32(&mut section, BYTE_ORDER);
        order.put16(&mut section, 1);
        order.put16(&mut section, 0);
        section.extend([0xff; 8]);
        if let Some(comment) = self.comment.take() {
            order.put_option(&mut section, OPT_COMMENT, comment.as_bytes());
        }
        let program = concat!("rocelab annotate ", env!("CARGO_PKG_VERSION"));
        order.put_option(&mut section, OPT_USERAPPL, program.as_bytes());
        order.put_end(&mut section);
        self.whole(order, SECTION, &section)?;

        let link = from.u32(head, 20).unwrap_or_default();
        let Ok(number) = u16::try_from(link & 0x03ff_ffff) else {
            return self.corrupt("a link type that pcapng has no room for");
        };
        let mut interface = Vec::new();
        order.put16(&mut interface, number);
        order.put16(&mut interface, 0);
        order.put32(&mut interface, from.u32(head, 16).unwrap_or_default());
        let digits = if unit == 1_000_000 { 6 } else { 9 };
        order.put_option(&mut interface, OPT_TSRESOL, &[digits]);
        if link >> 26 & 1 == 1 {
            // the length of an FCS: 16-bit units in pcap, bits in pcapng
            order.put_option(&mut interface, OPT_FCSLEN, &[(link >> 28) as u8 * 16]);
        }
        order.put_end(&mut interface);
        self.whole(order, INTERFACE, &interface)?;
        Ok(true)
    }

    fn whole(&mut self, order: Order, kind: u32, body: &[u8]) -> Result<(), CopyError> {
        let mut block = Vec::with_capacity(body.len() + 12);
        let Ok(len) = u32::try_from(body.len() + 12) else {
            return self.corrupt("a block over 4 GiB");
        };
        order.put32(&mut block, kind);
        order.put32(&mut block, len);
        block.extend(body);
        order.put32(&mut block, len);
        self.write(&block)
    }

    fn record(
        &mut self,
        from: Order,
        form: PcapForm,
        comments: Comments<'_>,
    ) -> Result<bool, CopyError> {
        let mut head = Vec::new();
        if !self.need(form.head, &mut head)? {
            return Ok(false);
        }
        let field = |at| from.u32(&head, at).unwrap_or_default();
        let (seconds, fraction, len, wire_len) = (field(0), field(4), field(8), field(12));
        if len > MAX_PACKET {
            return self.corrupt("a record over 16 MiB");
        }
        let order = Order { big: false };
        let time = u64::from(seconds) * form.unit + u64::from(fraction);
        let mut body = Vec::with_capacity(len as usize + 64);
        order.put32(&mut body, 0);
        order.put32(&mut body, (time >> 32) as u32);
        order.put32(&mut body, time as u32);
        order.put32(&mut body, len);
        order.put32(&mut body, wire_len.max(len));
        self.need(len as usize, &mut body)?;
        body.resize(body.len().next_multiple_of(4), 0);
        let mut block = Vec::with_capacity(body.len() + 12);
        order.put32(&mut block, PACKET_ENHANCED);
        order.put32(&mut block, body.len() as u32 + 12);
        block.extend(&body);
        order.put32(&mut block, body.len() as u32 + 12);
        self.packet(order, &block, comments)?;
        Ok(true)
    }

    fn packet(
        &mut self,
        order: Order,
        block: &[u8],
        comments: Comments<'_>,
    ) -> Result<(), CopyError> {
        self.packets += 1;
        let comments = comments(self.packets);
        if comments.is_empty() {
            return self.write(block);
        }
        match with_comments(block, order, &comments) {
            Some(made) => {
                self.commented += 1;
                self.write(&made)
            }
            None => {
                self.bare += 1;
                self.write(block)
            }
        }
    }

    fn block(&mut self, order: Order, comments: Comments<'_>) -> Result<bool, CopyError> {
        let mut head = Vec::new();
        if !self.need(4, &mut head)? {
            return Ok(false);
        }
        let kind = order.u32(&head, 0).unwrap_or_default();
        if kind == SECTION {
            return self.section(head);
        }
        self.need(4, &mut head)?;
        let len = order.u32(&head, 4).unwrap_or_default();
        if len < 12 || len % 4 != 0 {
            return self.corrupt("a block length that is no multiple of 4, or below 12");
        }
        if !matches!(kind, PACKET_OBSOLETE | PACKET_SIMPLE | PACKET_ENHANCED) {
            return self.pass(&head, len);
        }
        if len > MAX_PACKET {
            return self.corrupt("a packet block over 16 MiB");
        }
        self.need(len as usize - head.len(), &mut head)?;
        if kind != PACKET_SIMPLE {
            self.packet(order, &head, comments)?;
            return Ok(true);
        }
        // it has no options
        self.packets += 1;
        self.bare += u64::from(!comments(self.packets).is_empty());
        self.write(&head)?;
        Ok(true)
    }

    /// Copies the section header of which `head` has the type. The copy has another length in bytes,
    /// so the section length becomes "not specified".
    fn section(&mut self, mut head: Vec<u8>) -> Result<bool, CopyError> {
        self.need(8, &mut head)?;
        let big = match (Order { big: false }).u32(&head, 8) {
            Some(BYTE_ORDER) => false,
            Some(magic) if magic == BYTE_ORDER.swap_bytes() => true,
            _ => return self.corrupt("a section without its byte-order magic"),
        };
        let order = Order { big };
        self.format = Format::PcapNg(order);
        let len = order.u32(&head, 4).unwrap_or_default();
        if len < 12 || len % 4 != 0 {
            return self.corrupt("a block length that is no multiple of 4, or below 12");
        }
        if len as usize >= SECTION_FIXED {
            self.need(12, &mut head)?;
            if let Some(section_length) = head.get_mut(16..24) {
                section_length.fill(0xff);
            }
        }
        let Some(comment) =
            self.comment.take().filter(|_| (SECTION_FIXED..BUFFER).contains(&(len as usize)))
        else {
            return self.pass(&head, len);
        };
        self.need(len as usize - head.len(), &mut head)?;
        let made = section_with_comment(&head, order, comment);
        self.write(&made.unwrap_or(head))?;
        Ok(true)
    }

    /// Copies the rest of the block that starts with `head`.
    fn pass(&mut self, head: &[u8], len: u32) -> Result<bool, CopyError> {
        // a block that fits the buffer is written whole or not at all: nothing may follow half a block
        let rest = len as usize - head.len();
        if rest <= BUFFER {
            let mut block = head.to_vec();
            self.need(rest, &mut block)?;
            self.write(&block)?;
            return Ok(true);
        }
        self.write(head)?;
        let mut left = rest;
        let mut piece = Vec::with_capacity(BUFFER);
        while left > 0 {
            piece.clear();
            let count = self.read(left.min(BUFFER), &mut piece)?;
            if count == 0 {
                return Err(CopyError::Cut(self.packets));
            }
            self.write(&piece)?;
            left -= count;
        }
        Ok(true)
    }
}
