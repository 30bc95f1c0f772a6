// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes as a capture, through the whole pipeline with tight limits.
#![no_main]

use std::io::Cursor;

use _core::read::{Counter, open_compressed};
use _core::{Engine, Options, Select};
use libfuzzer_sys::fuzz_target;
use roce::flow::Config;

fuzz_target!(|file: &[u8]| {
    let Ok(plain) = open_compressed(Box::new(Cursor::new(file.to_vec())), Counter::default())
    else {
        return;
    };
    let tracker = Config {
        max_live: 4,
        max_connections: 8,
        max_findings: 8,
        go_back_n: true,
        keep_messages: true,
    };
    let options = Options {
        ports: vec![],
        // a fuzzer does not find right ICRCs: with them checked no packet would be followed
        icrc: false,
        threads: 1,
        packets: true,
        select: Select::default(),
        tracker,
    };
    let mut engine = Engine::new(vec![plain], options);
    while engine.step() {}
    let rows = engine.finish();
    assert!(rows.len() <= 8);
    for row in &rows {
        for stats in row.directions.iter().flatten() {
            assert!(stats.goodput_bytes <= stats.payload_bytes);
            assert!(stats.retransmitted + stats.messages <= stats.packets + stats.retransmitted);
        }
    }
    let totals = &engine.totals;
    let headers: u64 = totals.by_header().iter().map(|row| row.1).sum();
    assert_eq!(headers + totals.payload_bytes, totals.wire_bytes);
});
