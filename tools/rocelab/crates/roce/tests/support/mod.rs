// SPDX-License-Identifier: GPL-2.0-or-later
//! Feeds frames to a tracker as the pipeline does, and returns its findings.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod truth;

use rc_simulator::frame::{Host, Transport, ethernet};
use roce::finding::{At, Finding, Rule, Severity};
use roce::flow::{Config, Connection, Tracker};
use roce::{Frame, Icrc, Link, Ports, decode, icrc};

/// A tracker and the frames that it follows.
pub struct Capture {
    pub tracker: Tracker,
    packets: u64,
    time_ns: i64,
}

impl Capture {
    pub fn new(config: Config) -> Self {
        Self { tracker: Tracker::new(config), packets: 0, time_ns: 1_700_000_000_000_000_000 }
    }

    /// Follows a packet 1 µs after the previous one; returns the number of its connection.
    pub fn packet(&mut self, from: Host, to: Host, packet: &Transport) -> Option<u32> {
        self.time_ns += 1000;
        let frame = ethernet(from, to, self.packets as u16, packet);
        self.frame(self.time_ns, &frame)
    }

    /// Follows a frame at a time.
    pub fn frame(&mut self, time_ns: i64, frame: &[u8]) -> Option<u32> {
        self.packets += 1;
        self.time_ns = time_ns;
        let len = frame.len() as u32;
        let Frame::Roce(packet) = decode(Link::Ethernet, frame, len, &Ports::default()) else {
            panic!("not RoCE")
        };
        assert_eq!(icrc::check(&packet, frame), Icrc::Ok);
        let at = At { file: 0, packet: self.packets, time_ns };
        self.tracker.packet(&packet, self.packets, frame, at, None)
    }

    /// Follows a packet that was damaged before the capture point.
    pub fn corrupted(&mut self, from: Host, to: Host, packet: &Transport) {
        self.time_ns += 1000;
        self.packets += 1;
        let frame = ethernet(from, to, self.packets as u16, packet);
        let len = frame.len() as u32;
        let Frame::Roce(packet) = decode(Link::Ethernet, &frame, len, &Ports::default()) else {
            panic!("not RoCE")
        };
        let at = At { file: 0, packet: self.packets, time_ns: self.time_ns };
        let diagnosis = Some(icrc::Diagnosis::Corrupted);
        self.tracker.packet(&packet, self.packets, &frame, at, diagnosis);
    }

    /// Lets time pass.
    pub fn wait_ns(&mut self, ns: i64) {
        self.time_ns += ns;
    }

    /// Ends the capture.
    pub fn finish(mut self) -> (Vec<Connection>, Vec<Finding>) {
        let connections = self.tracker.finish();
        (connections, self.tracker.findings.list)
    }
}

/// The findings that are errors.
pub fn errors(findings: &[Finding]) -> Vec<&Finding> {
    findings.iter().filter(|one| one.severity == Severity::Error).collect()
}

/// The rules of findings.
pub fn rules(findings: &[Finding]) -> Vec<Rule> {
    findings.iter().map(|one| one.rule).collect()
}
