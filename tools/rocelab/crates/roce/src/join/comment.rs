// SPDX-License-Identifier: GPL-2.0-or-later
//! The packet comments of rxedump (docs/formats/rxedump.md): one line of `key=value`.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::stage_times::{RX_STAGES, StageTimes, TX_STAGES};
use crate::packet::Net;

/// rxedump's comments are shorter.
const LONGEST: usize = 4096;
/// Names of nodes, devices and reasons are short; without a limit a file could fill the memory.
const LONGEST_NAME: usize = 64;

/// Direction of a packet in the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dir {
    /// Sent.
    Tx,
    /// Received.
    Rx,
}

/// Why a comment is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// Not written by rocelab.
    Foreign,
    /// An unknown version.
    Version,
    /// Not `key=value`, not UTF-8, or an invalid escape.
    Syntax,
    /// A repeated key.
    Repeated,
    /// A required key is missing.
    Missing,
    /// A number that is out of range.
    Range,
    /// It contradicts the packet's bytes.
    Contradiction,
}

impl Reject {
    /// All values, in the order of `as usize`.
    pub const ALL: [Self; 7] = [
        Self::Foreign,
        Self::Version,
        Self::Syntax,
        Self::Repeated,
        Self::Missing,
        Self::Range,
        Self::Contradiction,
    ];

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Version => "version",
            Self::Syntax => "syntax",
            Self::Repeated => "repeated_key",
            Self::Missing => "missing_key",
            Self::Range => "range",
            Self::Contradiction => "contradiction",
        }
    }
}

/// A parsed comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment<'a> {
    /// The node that wrote it.
    pub node: Cow<'a, str>,
    /// The node's device.
    pub dev: Cow<'a, str>,
    /// Sent or received by that node.
    pub dir: Dir,
    /// The opcode's name; absent if the driver dropped the packet before it knew the opcode.
    pub op: Option<Cow<'a, str>>,
    /// The local QP; absent if the packet was dropped before its QP was looked up.
    pub qpn: Option<u32>,
    /// The destination QP of the BTH; absent if the packet was dropped before it was read.
    pub dqpn: Option<u32>,
    /// The PSN of the BTH; absent if the packet was dropped before it was read.
    pub psn: Option<u32>,
    /// Time in the driver.
    pub stages: StageTimes,
    /// Time between the two parts of the record: hand-over and device, or arrival and queue.
    pub gap_ns: Option<u64>,
    /// Whether the task was switched out in between.
    pub switched: bool,
    /// Whether the packet never left its host.
    pub loopback: bool,
    /// Why the driver dropped it.
    pub drop: Option<Cow<'a, str>>,
}

impl<'a> Comment<'a> {
    /// Parses a comment. Unknown keys are skipped, since later versions may add some.
    ///
    /// # Errors
    /// Why the comment cannot be used.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Reject> {
        if !bytes.starts_with(b"rocelab/") {
            return Err(Reject::Foreign);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Reject::Syntax)?;
        let mut words = text.trim_end_matches(['\0', '\n']).split(' ');
        if words.next() != Some("rocelab/1") {
            return Err(Reject::Version);
        }
        if text.len() > LONGEST {
            return Err(Reject::Syntax);
        }
        let mut draft = Draft::default();
        for word in words.filter(|word| !word.is_empty()) {
            let (key, value) = word.split_once('=').ok_or(Reject::Syntax)?;
            draft.take(key, value)?;
        }
        draft.finish()
    }
}

impl Comment<'_> {
    /// The comment as rxedump writes it for a packet carried by `net`.
    #[must_use]
    pub fn text(&self, net: Net) -> String {
        let (dir, names) = match self.dir {
            Dir::Tx => ("tx", &TX_STAGES[..]),
            Dir::Rx => ("rx", &RX_STAGES[..]),
        };
        let net = if net == Net::V1 { "v1" } else { "v2" };
        let mut text = format!("rocelab/1 node={} dev={}", escape(&self.node), escape(&self.dev));
        // writing to a String cannot fail
        let _ = write!(text, " dir={dir} net={net}");
        if let Some(op) = &self.op {
            let _ = write!(text, " op={}", escape(op));
        }
        for (key, number) in [("qpn", self.qpn), ("dqpn", self.dqpn), ("psn", self.psn)] {
            if let Some(number) = number {
                let _ = write!(text, " {key}={number}");
            }
        }
        for (at, name) in names.iter().enumerate() {
            if let Some(ns) = self.stages.get(at) {
                let _ = write!(text, " {name}_ns={ns}");
            }
        }
        if let Some(ns) = self.gap_ns {
            let _ = write!(text, " gap_ns={ns}");
        }
        for (word, set) in [(" switched=1", self.switched), (" loopback=1", self.loopback)] {
            text.push_str(if set { word } else { "" });
        }
        if let Some(reason) = &self.drop {
            let _ = write!(text, " drop={}", escape(reason));
        }
        text
    }
}

/// Percent-escapes all characters except RFC 3986's unreserved ones.
#[must_use]
pub fn escape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[derive(Default)]
struct Draft<'a> {
    node: Option<Cow<'a, str>>,
    dev: Option<Cow<'a, str>>,
    dir: Option<Dir>,
    op: Option<Cow<'a, str>>,
    qpn: Option<u32>,
    dqpn: Option<u32>,
    psn: Option<u32>,
    switched: Option<bool>,
    loopback: Option<bool>,
    gap: Option<u64>,
    drop: Option<Cow<'a, str>>,
    tx: StageTimes,
    rx: StageTimes,
}

impl<'a> Draft<'a> {
    fn take(&mut self, key: &'a str, value: &'a str) -> Result<(), Reject> {
        match key {
            "node" => once(&mut self.node, name(value)?),
            "dev" => once(&mut self.dev, name(value)?),
            "op" => once(&mut self.op, name(value)?),
            "drop" => once(&mut self.drop, name(value)?),
            "dir" => once(
                &mut self.dir,
                match value {
                    "tx" => Dir::Tx,
                    "rx" => Dir::Rx,
                    _ => return Err(Reject::Syntax),
                },
            ),
            "qpn" => once(&mut self.qpn, number24(value)?),
            "dqpn" => once(&mut self.dqpn, number24(value)?),
            "psn" => once(&mut self.psn, number24(value)?),
            "switched" => once(&mut self.switched, value == "1"),
            "loopback" => once(&mut self.loopback, value == "1"),
            "gap_ns" => once(&mut self.gap, duration(value)?),
            _ => self.stage(key, value),
        }
    }

    fn stage(&mut self, key: &str, value: &str) -> Result<(), Reject> {
        let Some(stage) = key.strip_suffix("_ns") else { return Ok(()) };
        let (tx, rx) = (index(&TX_STAGES, stage), index(&RX_STAGES, stage));
        if tx.is_none() && rx.is_none() {
            return Ok(());
        }
        let ns = duration(value)?;
        if let Some(at) = tx {
            set(&mut self.tx, at, ns)?;
        }
        if let Some(at) = rx {
            set(&mut self.rx, at, ns)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Comment<'a>, Reject> {
        let dir = self.dir.ok_or(Reject::Missing)?;
        let named = self.op.is_some() && self.qpn.is_some() && self.dqpn.is_some();
        if self.drop.is_none() && !(named && self.psn.is_some()) {
            return Err(Reject::Missing);
        }
        Ok(Comment {
            node: self.node.ok_or(Reject::Missing)?,
            dev: self.dev.ok_or(Reject::Missing)?,
            dir,
            op: self.op,
            qpn: self.qpn,
            dqpn: self.dqpn,
            psn: self.psn,
            stages: if dir == Dir::Tx { self.tx } else { self.rx },
            gap_ns: self.gap,
            switched: self.switched.unwrap_or_default(),
            loopback: self.loopback.unwrap_or_default(),
            drop: self.drop,
        })
    }
}

fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), Reject> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Reject::Repeated),
    }
}

fn set(times: &mut StageTimes, stage: usize, ns: u64) -> Result<(), Reject> {
    if times.set(stage, ns) { Ok(()) } else { Err(Reject::Repeated) }
}

fn index(stages: &[&str], name: &str) -> Option<usize> {
    stages.iter().position(|stage| *stage == name)
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, Reject> {
    // FromStr accepts a sign, the grammar does not
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Reject::Syntax);
    }
    value.parse().map_err(|_| Reject::Range)
}

/// Below 2^63 ns, so that differences fit a signed number.
fn duration(value: &str) -> Result<u64, Reject> {
    let ns: i64 = number(value)?;
    u64::try_from(ns).map_err(|_| Reject::Range)
}

fn number24(value: &str) -> Result<u32, Reject> {
    let number: u32 = number(value)?;
    if number >> 24 == 0 { Ok(number) } else { Err(Reject::Range) }
}

/// Decodes percent escapes.
fn name(value: &str) -> Result<Cow<'_, str>, Reject> {
    if value.is_empty() || value.len() > LONGEST_NAME {
        return Err(if value.is_empty() { Reject::Syntax } else { Reject::Range });
    }
    if !value.contains('%') {
        return Ok(Cow::Borrowed(value));
    }
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let (high, low) = (hex(rest.next())?, hex(rest.next())?);
            bytes.push(high << 4 | low);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Reject::Syntax)
}

fn hex(byte: Option<u8>) -> Result<u8, Reject> {
    let digit = char::from(byte.ok_or(Reject::Syntax)?).to_digit(16);
    digit.and_then(|digit| u8::try_from(digit).ok()).ok_or(Reject::Syntax)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TX: &str = "rocelab/1 node=n1 dev=rxe0 dir=tx net=v2 op=RC_RDMA_WRITE_ONLY qpn=17 dqpn=18 \
                      psn=4711 wqe_ns=41 alloc_ns=210 icrc_ns=88 xmit_ns=640";

    fn reject(text: &str) -> Option<Reject> {
        Comment::parse(text.as_bytes()).err()
    }

    /// The stages that a comment has, by name.
    fn measured(comment: &Comment<'_>, names: &[&'static str]) -> Vec<(&'static str, u64)> {
        let found = names.iter().enumerate();
        found.filter_map(|(at, name)| Some((*name, comment.stages.get(at)?))).collect()
    }

    #[test]
    fn reads_the_documented_example() {
        let comment = Comment::parse(TX.as_bytes()).unwrap();
        assert_eq!((comment.node.as_ref(), comment.dev.as_ref()), ("n1", "rxe0"));
        assert_eq!((comment.qpn, comment.dqpn, comment.psn), (Some(17), Some(18), Some(4711)));
        assert_eq!(comment.dir, Dir::Tx);
        assert_eq!(
            measured(&comment, &TX_STAGES),
            [("wqe", 41), ("alloc", 210), ("icrc", 88), ("xmit", 640)],
            "an absent stage is absent"
        );
    }

    #[test]
    fn a_shared_stage_belongs_to_its_direction() {
        let rx = TX.replace("dir=tx", "dir=rx");
        let comment = Comment::parse(rx.as_bytes()).unwrap();
        assert_eq!(measured(&comment, &RX_STAGES), [("icrc", 88)]);
    }

    #[test]
    fn writes_what_it_reads() {
        let text = TX.replace("n1", "a%20b%C3%A9") + " gap_ns=7 switched=1 drop=icrc";
        let comment = Comment::parse(text.as_bytes()).unwrap();
        assert_eq!(comment.text(Net::V2Ipv6), text);
        let dropped = "rocelab/1 node=n2 dev=rxe0 dir=rx net=v1 loopback=1 drop=short";
        assert_eq!(Comment::parse(dropped.as_bytes()).unwrap().text(Net::V1), dropped);
    }

    #[test]
    fn undoes_escapes() {
        let text = TX.replace("node=n1", "node=a%20b%C3%A9");
        assert_eq!(Comment::parse(text.as_bytes()).unwrap().node, "a bé");
    }

    #[test]
    fn later_versions_may_add_keys() {
        let text = format!("{TX} psn_status=new switched=1 gap_ns=7 drop=sequence");
        let comment = Comment::parse(text.as_bytes()).unwrap();
        assert!(comment.switched && !comment.loopback);
        assert_eq!(comment.gap_ns, Some(7));
        assert_eq!(comment.drop.as_deref(), Some("sequence"));
    }

    #[test]
    fn a_packet_dropped_on_arrival_has_no_queue_pair() {
        let text = "rocelab/1 node=n2 dev=rxe0 dir=rx net=v2 drop=short";
        let comment = Comment::parse(text.as_bytes()).unwrap();
        assert_eq!((comment.qpn, comment.psn, comment.op), (None, None, None));
        assert_eq!(reject(&text.replace(" drop=short", "")), Some(Reject::Missing));
    }

    #[test]
    fn rejects_with_the_reason() {
        assert_eq!(reject("a note of mine"), Some(Reject::Foreign));
        assert_eq!(reject(&TX.replace("rocelab/1", "rocelab/2")), Some(Reject::Version));
        assert_eq!(reject(&TX.replace("rocelab/1", "rocelab/11")), Some(Reject::Version));
        assert_eq!(reject(&TX.replace("psn=4711", "psn=")), Some(Reject::Syntax));
        assert_eq!(reject(&TX.replace("psn=4711", "psn=-1")), Some(Reject::Syntax));
        assert_eq!(reject(&TX.replace("psn=4711", "psn=16777216")), Some(Reject::Range));
        assert_eq!(reject(&TX.replace("psn=4711 ", "")), Some(Reject::Missing));
        assert_eq!(reject(&TX.replace("41", "99999999999999999999")), Some(Reject::Range));
        assert_eq!(reject(&format!("{TX} wqe_ns=1")), Some(Reject::Repeated));
        assert_eq!(reject(&format!("{TX} node=n2")), Some(Reject::Repeated));
        assert_eq!(reject(&TX.replace("n1", "%zz")), Some(Reject::Syntax));
        assert_eq!(reject(&TX.replace("n1", "%4")), Some(Reject::Syntax));
        assert_eq!(reject(&TX.replace("n1", "%ff")), Some(Reject::Syntax));
        assert_eq!(reject(&TX.replace("n1", &"n".repeat(65))), Some(Reject::Range));
        assert_eq!(reject(&format!("{TX} word")), Some(Reject::Syntax));
        assert_eq!(Comment::parse(b"rocelab/1 \xff=\xff").err(), Some(Reject::Syntax));
    }
}
