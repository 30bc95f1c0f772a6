// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes captures with one cause of delay injected, two, or none, and what each cost:
//! `injected FOLDER FIRST COUNT` makes FOLDER/SEED.pcap and a line for each on standard output: the
//! seed, then `cause=ns` for each that was injected and that the capture shows. The cost of a cause is by how much
//! longer the messages take than without it, as far as the capture shows it: a timer that runs for a request that
//! was lost before the capture point, with nothing else outstanding, looks like an idle sender.

use std::io::Write;
use std::path::Path;
use std::{env, fs, io};

use rc_simulator::{Plan, Recovery, Trace, simulate};

const MESSAGES: usize = 60;
const CAUSES: u64 = 7;

/// A cause by its number.
fn inject(cause: u64, plan: Plan) -> (&'static str, Plan) {
    let mut lost = plan.lost;
    match cause {
        0 => {
            lost[0] = 20;
            ("loss_near", Plan { lost, ..plan })
        }
        1 => {
            lost[1] = 20;
            ("loss_far", Plan { lost, ..plan })
        }
        2 => {
            lost[2] = 40;
            ("loss_far", Plan { lost, ..plan })
        }
        3 => ("receiver_not_ready", Plan { rnr: 100, ..plan }),
        4 => ("corruption", Plan { corrupted: 20, ..plan }),
        5 => ("late_answers", Plan { late: (40, 150_000), ..plan }),
        _ => ("reordering", Plan { paths: [3, 1, 1, 1], ..plan }),
    }
}

/// Whether it happened, and the capture shows it.
fn occurred(cause: &str, trace: &Trace) -> bool {
    match cause {
        "receiver_not_ready" => trace.rnr_naks > 0,
        "corruption" => trace.corrupted > 0,
        "late_answers" => trace.late > 0,
        // a sender with nothing outstanding looks idle when its next request is lost before the tap
        _ => trace.resends.iter().any(|one| one.seen.is_some_and(|seen| seen.passed)),
    }
}

fn pcap(path: &Path, trace: &Trace) -> io::Result<()> {
    let mut file = io::BufWriter::new(fs::File::create(path)?);
    // nanoseconds, version 2.4, snap length, Ethernet
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 1 << 18, 1] {
        file.write_all(&word.to_le_bytes())?;
    }
    for (time_ns, frame) in &trace.frames {
        let (seconds, ns) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        let len = frame.len() as u32;
        for word in [seconds as u32, ns as u32, len, len] {
            file.write_all(&word.to_le_bytes())?;
        }
        file.write_all(frame)?;
    }
    file.flush()
}

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [folder, first, count] = &words[..] else {
        return Err(io::Error::other("injected FOLDER FIRST COUNT"));
    };
    let number = |word: &String| word.parse::<u64>().map_err(io::Error::other);
    let (first, count) = (number(first)?, number(count)?);
    for seed in first..first + count {
        let clean = Plan {
            messages: MESSAGES,
            recovery: Recovery::GoBackN,
            by_packet: true,
            ..Plan::default()
        };
        // a third has none, a third one, a third two
        let causes = match seed % 3 {
            0 => vec![],
            1 => vec![seed / 3 % CAUSES],
            _ => vec![seed / 3 % CAUSES, seed / 3 / CAUSES % CAUSES],
        };
        let plan = causes.iter().fold(clean, |plan, &cause| inject(cause, plan).1);
        let trace = simulate(seed, plan);
        pcap(&Path::new(folder).join(format!("{seed}.pcap")), &trace)?;
        let mut line = seed.to_string();
        for (place, &cause) in causes.iter().enumerate() {
            let others = causes.iter().enumerate().filter(|&(other, _)| other != place);
            let others = others.fold(clean, |plan, (_, &other)| inject(other, plan).1);
            let (name, _) = inject(cause, clean);
            let without = simulate(seed, others);
            if occurred(name, &trace) && without.complete {
                let took = |trace: &Trace| trace.ended_ns - trace.hidden_ns();
                line += &format!(" {name}={}", (took(&trace) - took(&without)).max(0));
            }
        }
        println!("{line}");
    }
    Ok(())
}
