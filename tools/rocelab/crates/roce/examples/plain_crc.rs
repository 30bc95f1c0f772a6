// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads a file and computes a fast CRC-32 of its bytes: the bench compares the analyzer with this.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

/// The size of the analyzer's reads.
const PIECE: usize = 128 << 10;

fn main() -> io::Result<()> {
    let path = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("name a file"))?;
    let mut file = File::open(path)?;
    let mut piece = vec![0; PIECE];
    let mut hasher = crc32fast::Hasher::new();
    loop {
        let count = file.read(&mut piece)?;
        let Some(bytes) = piece.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        hasher.update(bytes);
    }
    writeln!(io::stdout(), "{:08x}", hasher.finalize())
}
