// SPDX-License-Identifier: GPL-2.0-or-later
use std::fmt;
use std::io;

/// Why a capture cannot be read, or not further.
#[derive(Debug)]
pub enum ReadError {
    /// The operating system's word.
    Io(io::Error),
    /// Neither pcap nor pcapng.
    Unknown([u8; 4]),
    /// Not one byte, or less than a file header.
    Empty,
    /// A structure that cannot be; `packet` is the last good frame number.
    Corrupt {
        /// Frames read before.
        packet: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The file ends within a record; `packet` is the last whole frame's number.
    Cut {
        /// Frames read before.
        packet: u64,
    },
    /// A small file that decompresses without end.
    Bomb,
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
            Self::Empty => write!(f, "it ends before the file header does"),
            Self::Corrupt { packet, what } => write!(f, "corrupt after packet {packet}: {what}"),
            Self::Cut { packet } => write!(f, "ends within a record, after packet {packet}"),
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
