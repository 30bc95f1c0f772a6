// SPDX-License-Identifier: GPL-2.0-or-later
//! No trace of a correct connection has an error, no matter what the wire loses. `ROCELAB_SEEDS` sets
//! the number of seeds.

mod support;

use rc_simulator::{Plan, simulate};
use roce::finding::Finding;
use roce::flow::Config;
use support::{Capture, errors};

fn seeds() -> u64 {
    std::env::var("ROCELAB_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2000)
}

fn plan(seed: u64) -> Plan {
    let lost = match seed % 6 {
        0 => [0; 4],
        1 => [30, 0, 0, 0],
        2 => [0, 30, 0, 0],
        3 => [0, 0, 30, 0],
        4 => [0, 0, 0, 30],
        _ => [20; 4],
    };
    Plan { messages: 40, lost, rnr: if seed % 7 == 0 { 100 } else { 0 } }
}

/// Findings of a trace from its frame number `from` on.
fn judged(seed: u64, from: usize) -> Vec<Finding> {
    let trace = simulate(seed, plan(seed));
    assert!(trace.complete, "seed {seed}: the connection must recover");
    let mut capture = Capture::new(Config::default());
    for (time_ns, frame) in trace.frames.iter().skip(from) {
        capture.frame(*time_ns, frame);
    }
    capture.finish().1
}

fn without_errors(seeds: impl IntoIterator<Item = u64>, from: impl Fn(u64) -> usize) {
    let mut wrong = Vec::new();
    let mut all = 0;
    for seed in seeds {
        all += 1;
        let findings = judged(seed, from(seed));
        wrong.extend(errors(&findings).first().map(|one| format!("seed {seed}: {one:?}")));
    }
    assert!(wrong.is_empty(), "{} of {all} traces:\n{}", wrong.len(), {
        wrong.truncate(12);
        wrong.join("\n")
    });
}

#[test]
fn whole_captures() {
    without_errors(0..seeds(), |_| 0);
}

#[test]
fn captures_that_start_in_mid_traffic() {
    without_errors(0..seeds(), |seed| 5 + (seed % 90) as usize);
}

/// A READ before the path MTU is known seems to span a packet that was lost after it.
#[test]
fn losses_after_a_read_of_unknown_span() {
    without_errors([6451, 8453, 16463, 19087], |_| 0);
}
