// SPDX-License-Identifier: GPL-2.0-or-later
//! A file that another process may overwrite while it is read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;

/// The bytes of a file, as long as it begins as it did.
///
/// A ring of captures is written again from its oldest file on: that file is emptied, and begins with another
/// time. What was read before is of the old file if its beginning is still there afterwards.
pub struct Unchanged {
    file: File,
    head: Vec<u8>,
    now: Vec<u8>,
}

impl Unchanged {
    /// Reads `file`, which has to begin with `head`.
    #[must_use]
    pub fn new(file: File, head: Vec<u8>) -> Self {
        let now = vec![0; head.len()];
        Self { file, head, now }
    }
}

impl Read for Unchanged {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        if self.file.read_exact_at(&mut self.now, 0).is_err() || self.now != self.head {
            return Err(io::Error::other("it was overwritten while it was read"));
        }
        Ok(count)
    }
}
