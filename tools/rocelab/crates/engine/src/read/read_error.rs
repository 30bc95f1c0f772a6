// SPDX-License-Identifier: GPL-2.0-or-later
//! Errors of capture files.

use std::fmt;
use std::io;

/// Why a capture cannot be read, or only in part.
#[derive(Debug)]
pub enum ReadError {
    /// An error of the operating system.
    Io(io::Error),
    /// Neither pcap nor pcapng.
    Unknown([u8; 4]),
    /// Shorter than a file header.
    Empty,
    /// An impossible structure.
    Corrupt {
        /// The number of the last good frame.
        packet: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The file ends within a record.
    Cut {
        /// The number of the last complete frame.
        packet: u64,
    },
    /// The compressed data lack their end.
    CutCompressed {
        /// The number of the last complete frame.
        packet: u64,
    },
    /// A small file that decompresses to a huge one.
    Bomb,
    /// What whoever wrote the excerpt found in the capture.
    Reported(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Unknown(magic) => write!(
                f,
                "neither pcap nor pcapng: it begins with {:02x} {:02x} {:02x} {:02x}",
                magic[0], magic[1], magic[2], magic[3]
            ),
            Self::Reported(text) => write!(f, "{text}"),
            Self::Empty => write!(f, "it ends before the file header does"),
            Self::Corrupt { packet, what } => write!(f, "corrupt after packet {packet}: {what}"),
            Self::Cut { packet } => write!(f, "ends within a record, after packet {packet}"),
            Self::CutCompressed { packet } => {
                write!(f, "its compressed data end early, after packet {packet}")
            }
            Self::Bomb => {
                write!(f, "decompresses to more than a GiB and a thousand times its size")
            }
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
