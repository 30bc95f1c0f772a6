// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes as a capture file, compressed or not: read to the end in pieces of a hostile size.
#![no_main]

use std::io::Cursor;

use _core::read::{Block, Counter, Reader, open_compressed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&piece, file)) = input.split_first() else { return };
    let Ok(plain) = open_compressed(Box::new(Cursor::new(file.to_vec())), Counter::default())
    else {
        return;
    };
    let mut reader = Reader::new(plain, 0, usize::from(piece) + 1);
    let mut block = Block::default();
    let mut last = 0;
    loop {
        let more = reader.fill(&mut block);
        for record in &block.records {
            assert_eq!(block.frame(record).len(), record.len as usize);
            assert_eq!(record.number, last + 1);
            last = record.number;
            let _ = block.comment(record);
        }
        if !matches!(more, Ok(true)) {
            break;
        }
    }
});
