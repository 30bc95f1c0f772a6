// SPDX-License-Identifier: GPL-2.0-or-later
//! What the analyzer says of simulated connections: it finds no error in lawful traffic. On paths that
//! keep the order, what it calls certain happened, on the side of the capture point that it names, and
//! each time that a requester visibly sends again has a finding.
//!
//! `ROCELAB_SEEDS` sets the number of traces, all modes together; `--nocapture` shows what was lost and
//! found.

mod support;

use std::collections::BTreeMap;

use rc_simulator::{Plan, Recovery, simulate};
use roce::finding::{Finding, Severity};
use roce::flow::Config;
use support::Capture;
use support::truth::{self, Counts, count, problems};

/// Modes, of which each gets the same share of the seeds.
const MODES: u64 = 10;

fn seeds() -> u64 {
    let text = std::env::var("ROCELAB_SEEDS").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(10_000) / MODES
}

fn lossy(seed: u64) -> Plan {
    let lost = match seed % 6 {
        0 => [0; 4],
        1 => [30, 0, 0, 0],
        2 => [0, 30, 0, 0],
        3 => [0, 0, 30, 0],
        4 => [0, 0, 0, 30],
        _ => [20; 4],
    };
    Plan { messages: 40, lost, rnr: if seed % 7 == 0 { 100 } else { 0 }, ..Plan::default() }
}

/// Paths before the tap, behind it, or both.
fn spread(plan: Plan, seed: u64) -> Plan {
    let paths = [[3, 1, 1, 1], [1, 3, 1, 1], [1, 1, 3, 1], [1, 1, 1, 3], [2; 4]];
    Plan { paths: paths[(seed / 6 % 5) as usize], patience: (seed % 3) as usize * 16, ..plan }
}

fn adaptive(seed: u64) -> Plan {
    spread(Plan { recovery: Recovery::SelectiveRepeat, ..lossy(seed) }, seed)
}

fn multi_path(seed: u64) -> Plan {
    let recovery = [Recovery::SelectiveRepeat, Recovery::Irn][(seed % 2) as usize];
    let plan = Plan { recovery, ports: true, ..lossy(seed) };
    Plan { paths: [4, 1, 4, 1], ..spread(plan, seed) }
}

/// Where a capture that begins later begins.
fn later(seed: u64) -> usize {
    5 + (seed % 90) as usize
}

/// Findings of a trace from its frame number `from` on.
fn judged(trace: &rc_simulator::Trace, from: usize, config: &Config) -> Vec<Finding> {
    let mut capture = Capture::new(config.clone());
    for (time_ns, frame) in trace.frames.iter().skip(from) {
        capture.frame(*time_ns, frame);
    }
    capture.finish().1
}

/// Of this many traces, one may have a finding that is called certain and is false, or lack one, on paths
/// that keep the order; docs/checks/README.md has the measured rate.
const RARE: usize = 200;

/// Says what was counted; fails if there is an error, or more than a rare other problem if `strict`.
fn report(what: &str, strict: bool, wrong: &[String], counts: &Counts) {
    let all = seeds();
    println!("{what}: {all} traces, {} problem(s)", wrong.len());
    for (name, count) in counts {
        println!("  {name}: {count}");
    }
    let mut kinds = BTreeMap::<&str, (u64, &str)>::new();
    for one in wrong {
        let kind = one.split_once('{').map_or(one.as_str(), |(kind, _)| kind);
        kinds.entry(kind).or_insert((0, one)).0 += 1;
    }
    let first: Vec<_> =
        kinds.values().map(|(count, one)| format!("{count} times: {one}")).collect();
    println!("{}", first.join("\n"));
    let errors = wrong.iter().any(|one| one.starts_with(truth::ERROR));
    let many = strict && wrong.len() > all as usize / RARE;
    assert!(!errors && !many, "{what}:\n{}", first.join("\n"));
}

/// Compares with the truth; the capture has the whole connection.
fn whole(what: &str, strict: bool, plan: impl Fn(u64) -> Plan) {
    whole_with(what, strict, &Config::default(), plan);
}

fn whole_with(what: &str, strict: bool, config: &Config, plan: impl Fn(u64) -> Plan) {
    let (mut wrong, mut counts) = (Vec::new(), Counts::new());
    for seed in 0..seeds() {
        let plan = plan(seed);
        let trace = simulate(seed, plan);
        assert!(trace.complete, "seed {seed}: the connection must recover");
        let findings = judged(&trace, 0, config);
        count(&trace, &findings, &mut counts);
        for one in problems(&plan, &trace, &findings) {
            wrong.push(format!("{one} (seed {seed})"));
        }
    }
    report(what, strict, &wrong, &counts);
}

#[test]
fn go_back_n() {
    whole("Go-Back-N", true, lossy);
}

/// With `--profile gbn`, what Go-Back-N forbids is an error.
#[test]
fn go_back_n_by_its_profile() {
    let config = Config { go_back_n: true, ..Config::default() };
    whole_with("Go-Back-N, --profile gbn", true, &config, lossy);
}

#[test]
fn both_ends_send_requests() {
    whole("both ends send requests", true, |seed| Plan {
        duplex: true,
        messages: 25,
        ..lossy(seed)
    });
}

#[test]
fn selective_repeat() {
    let recovery = Recovery::SelectiveRepeat;
    whole("selective repeat", true, |seed| Plan { recovery, ..lossy(seed) });
}

#[test]
fn improved_roce_nic() {
    whole("IRN", true, |seed| Plan { recovery: Recovery::Irn, ..lossy(seed) });
}

#[test]
fn adaptive_routing() {
    whole("adaptive routing", false, adaptive);
}

#[test]
fn adaptive_routing_under_go_back_n() {
    whole("adaptive routing under Go-Back-N", false, |seed| spread(lossy(seed), seed));
}

#[test]
fn multi_path_senders() {
    whole("multi-path senders", false, multi_path);
}

/// A capture that begins later shows less, but nothing else.
fn midway(what: &str, strict: bool, plan: impl Fn(u64) -> Plan) {
    let mut wrong = Vec::new();
    for seed in 0..seeds() {
        let plan = plan(seed);
        let trace = simulate(seed, plan);
        let findings = judged(&trace, later(seed), &Config::default());
        let unseen = rc_simulator::Trace { resends: Vec::new(), ..trace };
        for one in problems(&plan, &unseen, &findings) {
            wrong.push(format!("{one} (seed {seed})"));
        }
    }
    report(what, strict, &wrong, &Counts::new());
}

#[test]
fn captures_that_start_in_mid_traffic() {
    midway("from mid-traffic", true, lossy);
}

#[test]
fn adaptive_routing_from_mid_traffic() {
    midway("adaptive routing, from mid-traffic", false, adaptive);
}

/// A READ before the path MTU is known seems to span a packet that was lost after it.
#[test]
fn losses_after_a_read_of_unknown_span() {
    for seed in [6451, 8453, 16463, 19087] {
        let plan = lossy(seed);
        let trace = simulate(seed, plan);
        let findings = judged(&trace, 0, &Config::default());
        assert_eq!(problems(&plan, &trace, &findings), Vec::<String>::new());
    }
}

const NONE: [String; 0] = [];

fn errors(seed: u64, plan: Plan, from: usize, go_back_n: bool) -> Vec<String> {
    let findings = judged(&simulate(seed, plan), from, &Config { go_back_n, ..Config::default() });
    let errors = findings.into_iter().filter(|one| one.severity == Severity::Error);
    errors.map(|one| one.detail).collect()
}

/// A READ of unknown span seems to fill a gap, and the next packet to follow it; or it seems to have two
/// responses, of which one is another READ's.
#[test]
fn reads_of_unknown_span_prove_nothing_of_what_follows() {
    for seed in [1226, 7055] {
        assert_eq!(errors(seed, adaptive(seed), 0, false), NONE);
    }
    assert_eq!(errors(4284, adaptive(4284), later(4284), false), NONE);
    assert_eq!(errors(3967, multi_path(3967), 0, false), NONE);
}

/// An RNR NAK acknowledges messages, which the MSN of the next ACK counts.
#[test]
fn messages_before_an_rnr_nak_count() {
    assert_eq!(errors(7070, adaptive(7070), later(7070), false), NONE);
}

/// The responder discards nothing after a NAK that is older than a retransmission.
#[test]
fn a_nak_may_be_older_than_a_retransmission() {
    assert_eq!(errors(3767, lossy(3767), 0, true), NONE);
}

/// The MSN passes 0 where the capture begins: the counts agree, but the responses to earlier requests show
/// that there were some.
#[test]
fn equal_counts_are_no_beginning_beside_responses_to_earlier_requests() {
    for seed in [76463, 77294, 89153] {
        assert_eq!(errors(seed, adaptive(seed), later(seed), false), NONE);
    }
}

/// A NAK arrives while its requester sends again, from an earlier PSN: that copy is accepted with what
/// follows it, and the next one, which answers the NAK, need not be complete.
#[test]
fn what_a_nak_asks_for_may_be_on_its_way() {
    for seed in [60389, 67397, 81887] {
        assert_eq!(errors(seed, lossy(seed), 0, true), NONE);
    }
}

/// Two READs whose responses fit one packet each look like one that spans two, as long as no packet has
/// shown the path MTU.
#[test]
fn a_guessed_span_holds_no_second_response() {
    assert_eq!(errors(73599, multi_path(73599), 0, false), NONE);
}
