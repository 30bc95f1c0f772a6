// SPDX-License-Identifier: GPL-2.0-or-later
//! Analyses a capture on one thread, ICRCs verified, as `rocelab analyze --threads 1` does: for a profiler,
//! without Python.

use std::fs::File;
use std::io::{self, Write as _};

use engine::{Analyzer, Options};

fn main() -> io::Result<()> {
    let path = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("name a file"))?;
    let mut analyzer = Analyzer::new(vec![Box::new(File::open(path)?)], Options::default());
    while analyzer.step() {}
    let connections = analyzer.finish();
    let (packets, findings) = (analyzer.totals.packets, analyzer.tracker.findings.list.len());
    writeln!(
        io::stdout(),
        "{packets} packets, {} connections, {findings} findings",
        connections.len()
    )
}
