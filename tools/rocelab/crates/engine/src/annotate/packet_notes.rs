// SPDX-License-Identifier: GPL-2.0-or-later
//! The comments of each packet, kept until the packet is copied.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

use roce::finding::Finding;
use roce::flow::{PsnStatus, Verdict};
use roce::join::{Dir, escape};

/// Findings kept per packet; more are counted.
const MAX_FINDINGS: usize = 32;
/// Characters written of a finding, or of a line of the verdict.
const MAX_DETAIL: usize = 512;

#[derive(Clone, Copy, Debug)]
enum Status {
    Known(PsnStatus),
    /// The status of the retransmission that starts with this packet.
    OfRetransmission(u64),
}

#[derive(Debug, Default)]
struct Note {
    status: Option<Status>,
    response: Option<(u64, i64)>,
    message: Option<u64>,
    findings: Vec<String>,
    driver: [Option<String>; 2],
}

/// Verdicts on retransmissions or messages, by first packet.
#[derive(Debug)]
struct ByFirst<T> {
    known: HashMap<u64, T>,
    /// Until which packet each verdict is needed.
    order: VecDeque<(u64, u64)>,
}

impl<T> Default for ByFirst<T> {
    fn default() -> Self {
        Self { known: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> ByFirst<T> {
    fn add(&mut self, key: u64, value: T, until: u64) {
        self.known.insert(key, value);
        self.order.push_back((until, key));
    }

    fn forget(&mut self, copied: u64) {
        while let Some(&(_, key)) = self.order.front().filter(|(until, _)| *until < copied) {
            self.order.pop_front();
            self.known.remove(&key);
        }
    }
}

/// Counts of what was written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Statuses, by `PsnStatus as usize`.
    pub status: [u64; PsnStatus::ALL.len()],
    /// Links from a response to its request.
    pub responses: u64,
    /// Packets of whole messages.
    pub messages: u64,
    /// Findings.
    pub findings: u64,
    /// Lines of the verdict.
    pub verdict: u64,
    /// Comments of the sending and of the receiving driver.
    pub driver: [u64; 2],
}

/// Notes on packets that are not copied yet.
#[derive(Debug, Default)]
pub struct Notes {
    /// Notes on the packets from `base` on.
    ring: VecDeque<Note>,
    base: u64,
    retransmissions: ByFirst<PsnStatus>,
    messages: ByFirst<u64>,
    /// Lines of the verdict, by packet. They are known before the first packet is copied.
    verdict: HashMap<u64, Vec<String>>,
    /// Counts of what was written.
    pub written: Written,
    /// Verdicts that came after their packet was copied.
    pub late: u64,
    /// Findings without a packet, and those beyond the limit per packet.
    pub unplaced: u64,
}

/// As much of a text as is written.
fn bounded(text: &str) -> String {
    text.chars().take(MAX_DETAIL).collect()
}

impl Notes {
    /// Starts with the lines of the verdict on the whole capture, by packet.
    #[must_use]
    pub fn new(verdict: &[(u64, String)]) -> Self {
        let mut notes = Self::default();
        for (packet, line) in verdict {
            notes.verdict.entry(*packet).or_default().push(bounded(line));
        }
        notes
    }

    fn at(&mut self, packet: u64) -> Option<&mut Note> {
        let Some(index) = packet.checked_sub(self.base.max(1)) else {
            self.late += 1;
            return None;
        };
        let index = usize::try_from(index).ok()?;
        while self.ring.len() <= index {
            self.ring.push_back(Note::default());
        }
        self.ring.get_mut(index)
    }

    /// Adds a verdict of the tracker, which has followed the capture up to packet `now`.
    pub fn verdict(&mut self, verdict: Verdict, now: u64) {
        match verdict {
            Verdict::Status { packet, status } => {
                if let Some(note) = self.at(packet) {
                    note.status = Some(Status::Known(status));
                }
            }
            Verdict::Retransmitted { packet, first } => {
                if let Some(note) = self.at(packet) {
                    note.status = Some(Status::OfRetransmission(first));
                }
            }
            Verdict::Retransmission { first, status } => {
                self.late += u64::from(first < self.base);
                self.retransmissions.add(first, status, now);
            }
            Verdict::Response { packet, to, ns } => {
                if let Some(note) = self.at(packet) {
                    note.response = Some((to, ns));
                }
            }
            Verdict::InMessage { packet, first } => {
                if let Some(note) = self.at(packet) {
                    note.message = Some(first);
                }
            }
            Verdict::Message { first, last } => {
                self.late += u64::from(first < self.base);
                self.messages.add(first, last, now);
            }
        }
    }

    /// Adds a finding.
    pub fn finding(&mut self, finding: &Finding) {
        if finding.at.packet == 0 {
            self.unplaced += 1;
            return;
        }
        let doubt = if finding.ambiguous { " ambiguous" } else { "" };
        let (severity, rule) = (finding.severity.name(), finding.rule.name());
        let text = format!("{severity} {rule}{doubt}: {}", bounded(&finding.detail));
        let Some(note) = self.at(finding.at.packet) else { return };
        if note.findings.len() < MAX_FINDINGS {
            note.findings.push(text);
        } else {
            self.unplaced += 1;
        }
    }

    /// Adds the comment of a driver.
    pub fn driver(&mut self, packet: u64, dir: Dir, text: String) {
        if let Some(note) = self.at(packet) {
            note.driver[dir as usize] = Some(text);
        }
    }

    /// The comments of the next packet, which is being copied.
    pub fn take(&mut self, packet: u64) -> Vec<String> {
        self.base = packet + 1;
        let lines = self.verdict.remove(&packet).unwrap_or_default();
        let note = self.ring.pop_front();
        if note.is_none() && lines.is_empty() {
            return Vec::new();
        }
        let note = note.unwrap_or_default();
        let mut comments = Vec::new();
        for (count, text) in self.written.driver.iter_mut().zip(note.driver) {
            *count += u64::from(text.is_some());
            comments.extend(text);
        }
        let mut text = String::from("rocelab/1");
        let bare = text.len();
        let status = match note.status {
            Some(Status::Known(status)) => Some(status),
            Some(Status::OfRetransmission(first)) => {
                self.retransmissions.known.get(&first).copied()
            }
            None => None,
        };
        // writing to a String cannot fail
        if let Some(status) = status {
            self.written.status[status as usize] += 1;
            let _ = write!(text, " psn_status={}", status.name());
        }
        if let Some((to, ns)) = note.response {
            self.written.responses += 1;
            let _ = write!(text, " response_to={to}");
            // the times of a capture may decrease
            if ns >= 0 {
                let _ = write!(text, " response_ns={ns}");
            }
        }
        let whole = note.message.and_then(|first| Some((first, *self.messages.known.get(&first)?)));
        if let Some((first, last)) = whole {
            self.written.messages += 1;
            let _ = write!(text, " message={first}..{last}");
        }
        for finding in &note.findings {
            self.written.findings += 1;
            let _ = write!(text, " finding={}", escape(finding));
        }
        for line in &lines {
            self.written.verdict += 1;
            let _ = write!(text, " verdict={}", escape(line));
        }
        if text.len() > bare {
            comments.push(text);
        }
        self.retransmissions.forget(packet);
        self.messages.forget(packet);
        comments
    }
}
