// SPDX-License-Identifier: GPL-2.0-or-later
//! Compares the findings on a simulated trace with what really happened.

use std::collections::BTreeMap;

use rc_simulator::{Cause, Fate, Mishap, Plan, Recovery, Resend, Side, Trace};
use roce::finding::{Finding, Lost, Rule, Severity};

/// How a problem begins that is an error in lawful traffic.
pub const ERROR: &str = "an error in lawful traffic";
/// Less than any requester's timer.
const SOON_NS: i64 = 100_000;

/// How often something was found, by name.
pub type Counts = BTreeMap<&'static str, u64>;

const fn is_response(opcode: u8) -> bool {
    matches!(opcode, 0x0d..=0x12)
}

const fn same_side(one: Side, other: roce::finding::Side) -> bool {
    matches!(
        (one, other),
        (Side::Before, roce::finding::Side::Before) | (Side::Behind, roce::finding::Side::Behind)
    )
}

/// Whether the latest packet with this PSN before the finding was lost, or overtaken, on this side.
fn is_true(lost: Lost, finding: &Finding, mishaps: &[Mishap]) -> bool {
    let Some(side) = lost.side else { return false };
    // the two requesters of a connection may use the same PSNs
    [true, false].into_iter().any(|from_first| {
        let of_it = |one: &&Mishap| {
            one.psn == lost.psn
                && one.from_first == from_first
                && is_response(one.opcode) == lost.is_response
                && one.time_ns < finding.at.time_ns
        };
        // of two copies on their way, a NAK may be about either
        let mut latest = mishaps.iter().rev().filter(of_it).take(2);
        latest.any(|one| same_side(one.side, side))
    })
}

/// Why a finding that claims to be certain is false.
fn falsehood(finding: &Finding, plan: &Plan, trace: &Trace) -> Option<&'static str> {
    if finding.severity == Severity::Error {
        return Some(ERROR);
    }
    if finding.ambiguous {
        return None;
    }
    let go_back_n = plan.recovery == Recovery::GoBackN;
    let overtaken = |one: &Mishap| one.fate == Fate::Overtaken && one.side == Side::Before;
    let holds = match (finding.rule, finding.lost) {
        (Rule::Loss, Some(lost)) => is_true(lost, finding, &trace.mishaps),
        (Rule::Rnr, _) => trace.rnr_naks > 0,
        (Rule::Reorder, _) => trace.mishaps.iter().any(overtaken),
        (Rule::SelectiveRepeat | Rule::NakRepeated | Rule::RetransmitStart, _) => !go_back_n,
        (Rule::UdpSourcePort, _) => plan.ports,
        _ => false,
    };
    (!holds).then_some("false")
}

/// Whether the findings tell that a requester sent again.
fn explained(resend: &Resend, findings: &[Finding]) -> bool {
    let Some(seen) = resend.seen.filter(|seen| seen.passed) else { return true };
    let at = |time_ns: i64| findings.iter().filter(move |one| one.at.time_ns == time_ns);
    let loss_at = |time_ns| at(time_ns).filter(|one| one.rule == Rule::Loss);
    let asked = |one: &Finding| matches!(one.rule, Rule::Loss | Rule::NakRepeated);
    // a run of packets that are sent again may jump forward: that is not seen to be a second one
    let just_told = findings.iter().any(|one| {
        let since = seen.time_ns - one.at.time_ns;
        (0..SOON_NS).contains(&since)
    });
    // one finding stands for all of a connection
    let collected = findings.iter().any(|one| {
        let rule = matches!(one.rule, Rule::Duplicate | Rule::Reorder);
        rule && one.at.time_ns <= seen.time_ns
    });
    // a NAK, or an RNR NAK, that the requester did not get
    let told = findings.iter().any(|one| {
        let names_it = one.lost.is_some_and(|lost| lost.psn == seen.psn);
        (names_it || one.rule == Rule::Rnr) && one.at.time_ns <= seen.time_ns
    });
    let any = || {
        let rules =
            [Rule::Loss, Rule::RetransmitStart, Rule::SpuriousRetransmission, Rule::Timeout];
        collected || told || at(seen.time_ns).any(|one| rules.contains(&one.rule))
    };
    match resend.cause {
        Cause::Nak => any() || resend.trigger_ns.is_some_and(|ns| at(ns).any(asked)),
        Cause::Rnr => resend.trigger_ns.is_some_and(|ns| at(ns).any(|one| one.rule == Rule::Rnr)),
        // sent again from the missing response: it is named
        Cause::ResponseGap if seen.psn == resend.psn && !resend.answered => {
            loss_at(seen.time_ns).any(|one| !one.ambiguous) || collected
        }
        Cause::ResponseGap => any() || just_told,
        Cause::Timeout => any(),
    }
}

/// What is wrong with the findings.
pub fn problems(plan: &Plan, trace: &Trace, findings: &[Finding]) -> Vec<String> {
    let mut problems = Vec::new();
    for finding in findings {
        if let Some(why) = falsehood(finding, plan, trace) {
            problems.push(format!("{why}: {:?} {finding:?}", finding.rule));
        }
    }
    for resend in &trace.resends {
        if !explained(resend, findings) {
            problems.push(format!("unexplained: {:?} {resend:?}", resend.cause));
        }
    }
    problems
}

/// Counts what was lost and what was found.
pub fn count(trace: &Trace, findings: &[Finding], counts: &mut Counts) {
    let mut add = |name, count: usize| *counts.entry(name).or_default() += count as u64;
    let lost = |side, response| {
        let is = |one: &&Mishap| {
            one.fate == Fate::Lost && one.side == side && is_response(one.opcode) == response
        };
        trace.mishaps.iter().filter(is).count()
    };
    add("packets", trace.frames.len());
    add("requests lost before the tap", lost(Side::Before, false));
    add("requests lost behind the tap", lost(Side::Behind, false));
    add("responses lost before the tap", lost(Side::Before, true));
    add("responses lost behind the tap", lost(Side::Behind, true));
    for finding in findings {
        let Some(lost) = finding.lost else { continue };
        let name = match (lost.side.filter(|_| !finding.ambiguous), lost.is_response) {
            (Some(roce::finding::Side::Before), false) => "losses of requests found before the tap",
            (Some(roce::finding::Side::Behind), false) => "losses of requests found behind the tap",
            (Some(roce::finding::Side::Before), true) => "losses of responses found before the tap",
            (Some(roce::finding::Side::Behind), true) => "losses of responses found behind the tap",
            (None, false) => "losses of requests, ambiguous",
            (None, true) => "losses of responses, ambiguous",
        };
        add(name, 1);
    }
    let visible = trace.resends.iter().filter(|one| one.seen.is_some_and(|seen| seen.passed));
    add("times that a requester visibly sent again", visible.count());
}
