// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads one capture file into blocks; the rest of each piece goes into the next block.

use std::io::Read as _;

use super::decompress::{BOMB, Input};
use super::erf_file::{self, Guess};
use super::parse_step::Step;
use super::pcap::Pcap;
use super::pcapng::PcapNg;
use super::read_error::ReadError;
use super::record_block::Block;

enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
    Erf,
}

/// Reads one capture.
pub struct Reader {
    input: Input,
    format: Option<Format>,
    file: u16,
    /// Bytes that were read but not parsed; they start the next block.
    rest: Vec<u8>,
    skip: u64,
    ended: bool,
    told_empty: bool,
    packets: u64,
    piece: usize,
    /// A signal came while bytes were awaited; whoever looks resets it.
    pub interrupted: bool,
    /// Why no more bytes come; told after the records before it.
    failed: Option<ReadError>,
    /// The compressed data lack their end.
    cut: bool,
    /// The file is still being written: its last record may be a part.
    growing: bool,
}

impl Reader {
    /// A reader over plain (decompressed) bytes that reads `piece` bytes at a time.
    #[must_use]
    pub fn new(input: Input, file: u16, piece: usize) -> Self {
        Self {
            input,
            format: None,
            file,
            rest: Vec::new(),
            skip: 0,
            ended: false,
            told_empty: false,
            packets: 0,
            piece,
            interrupted: false,
            failed: None,
            cut: false,
            growing: false,
        }
    }

    /// Reads what there is of a file that is still being written.
    #[must_use]
    pub fn of_growing(self) -> Self {
        Self { growing: true, told_empty: true, ..self }
    }

    /// Ends the capture here: what is read but not whole is dropped.
    pub fn stop(&mut self) {
        self.ended = true;
        self.told_empty = true;
        self.rest.clear();
        self.skip = 0;
    }

    /// Fills `block` with the next records, or with none if a signal came; `false` at the end of the
    /// file.
    ///
    /// # Errors
    /// `block` has the records before the error. The next call is at the end of the file.
    pub fn fill(&mut self, block: &mut Block) -> Result<bool, ReadError> {
        block.records.clear();
        while block.records.is_empty() && !(self.ended && self.rest.is_empty()) {
            let filled = self.read_piece(block);
            let parsed = self.parse(block, filled);
            if self.cut && !self.growing {
                self.failed = Some(ReadError::CutCompressed { packet: self.packets });
            }
            // what made the file end is the cause of what is cut
            if let Some(error) = self.failed.take().or(parsed.err()) {
                self.stop();
                return Err(error);
            }
            if self.interrupted {
                return Ok(true);
            }
        }
        let empty = self.format.is_none() && !std::mem::replace(&mut self.told_empty, true);
        if empty {
            return Err(ReadError::Empty);
        }
        Ok(!block.records.is_empty())
    }

    /// Reads a piece; returns how many bytes of `block.data` are filled.
    fn read_piece(&mut self, block: &mut Block) -> usize {
        self.interrupted = false;
        let mut filled = self.rest.len();
        let want = filled + self.piece;
        // later pieces overwrite the buffer without clearing it
        if block.data.len() < want {
            block.data.resize(want, 0);
        }
        block.data[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        while filled < want && !self.ended {
            match self.input.read(&mut block.data[filled..want]) {
                Ok(0) => self.ended = true,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                    self.interrupted = true;
                    break;
                }
                // a compressed file that ends early is good up to there
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    self.ended = true;
                    self.cut = true;
                }
                Err(error) => {
                    self.ended = true;
                    self.failed = Some(match error.to_string() == BOMB {
                        true => ReadError::Bomb,
                        false => error.into(),
                    });
                }
            }
        }
        filled
    }

    fn parse(&mut self, block: &mut Block, filled: usize) -> Result<(), ReadError> {
        let mut at = 0;
        loop {
            let available = filled - at;
            if self.skip > 0 {
                let step = self.skip.min(available as u64);
                self.skip -= step;
                at += step as usize;
                if self.skip > 0 {
                    break;
                }
                continue;
            }
            if available == 0 {
                break;
            }
            match self.step(block, at, filled)? {
                Step::Taken(len) => at += len,
                Step::Skip(len) => self.skip = len,
                Step::Need(len) if len <= available => {
                    return Err(self.corrupt("a structure longer than it says"));
                }
                Step::Need(_) if self.ended && self.growing => {
                    self.stop();
                    return Ok(());
                }
                Step::Need(_) if self.ended => {
                    // the last record is cut; the records before it are kept
                    let error = match self.format {
                        Some(_) => ReadError::Cut { packet: self.packets },
                        None => ReadError::Empty,
                    };
                    return Err(error);
                }
                Step::Need(_) => break,
            }
        }
        if self.ended && self.skip > 0 && !self.growing {
            return Err(ReadError::Cut { packet: self.packets });
        }
        self.rest.extend_from_slice(&block.data[at..filled]);
        Ok(())
    }

    fn step(&mut self, block: &mut Block, at: usize, to: usize) -> Result<Step, ReadError> {
        let Block { data, records } = block;
        let bytes = &data[at..to];
        match &mut self.format {
            Some(Format::Pcap(pcap)) => {
                let data = data.get(..to).unwrap_or_default();
                let (from, need) = pcap.run(data, at, self.file, &mut self.packets, records)?;
                Ok(if from > at { Step::Taken(from - at) } else { Step::Need(need) })
            }
            Some(Format::PcapNg(pcapng)) => {
                pcapng.step(bytes, at, self.file, &mut self.packets, records)
            }
            Some(Format::Erf) => erf_file::step(bytes, at, self.file, &mut self.packets, records),
            None => {
                let Some(magic) = bytes.first_chunk::<4>() else {
                    return Ok(Step::Need(4));
                };
                if *magic == PcapNg::MAGIC {
                    self.format = Some(Format::PcapNg(PcapNg::default()));
                    return Ok(Step::Taken(0));
                }
                if !Pcap::is_magic(*magic) {
                    return match erf_file::guess(bytes, self.ended) {
                        Guess::Yes => {
                            self.format = Some(Format::Erf);
                            Ok(Step::Taken(0))
                        }
                        Guess::After(len) => Ok(Step::Need(len)),
                        Guess::No => Err(ReadError::Unknown(*magic)),
                    };
                }
                let Some(header) = bytes.first_chunk::<{ Pcap::HEADER }>() else {
                    return Ok(Step::Need(Pcap::HEADER));
                };
                self.format = Pcap::new(header).map(Format::Pcap);
                Ok(Step::Taken(Pcap::HEADER))
            }
        }
    }

    fn corrupt(&self, what: &'static str) -> ReadError {
        ReadError::Corrupt { packet: self.packets, what }
    }
}
