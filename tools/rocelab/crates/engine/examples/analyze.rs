// SPDX-License-Identifier: GPL-2.0-or-later
//! Analyses a capture on one thread, ICRCs verified, as `rocelab analyze --threads 1` does: for a profiler,
//! without Python.

use std::fs::File;
use std::io::{self, Write as _};

use engine::{Analyzer, Filter, Options};
use roce::flow::Config;

fn main() -> io::Result<()> {
    let path = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("name a file"))?;
    let options = Options {
        ports: Vec::new(),
        icrc: true,
        threads: 1,
        read_ahead: false,
        packets: false,
        filter: Filter::default(),
        tracker: Config::default(),
        sort: true,
        offsets_ns: Vec::new(),
        looks: Vec::new(),
        absence: None,
    };
    let mut analyzer = Analyzer::new(vec![Box::new(File::open(path)?)], options);
    while analyzer.step() {}
    let connections = analyzer.finish();
    let (packets, findings) = (analyzer.totals.packets, analyzer.tracker.findings.list.len());
    writeln!(
        io::stdout(),
        "{packets} packets, {} connections, {findings} findings",
        connections.len()
    )
}
