// SPDX-License-Identifier: GPL-2.0-or-later
//! Findings of the checks. `docs/checks/README.md` has a section for each rule.

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Permitted, and worth knowing.
    Note,
    /// Permitted, but it costs performance.
    Warning,
    /// Violates the specification.
    Error,
}

impl Severity {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

macro_rules! rules {
    ($($variant:ident $name:literal $severity:ident;)*) => {
        /// A check, named like its section in `docs/checks/README.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "docs/checks/README.md has a section for each")]
        pub enum Rule { $($variant),* }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in files and docs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Severity of a violation, unless a profile changes it.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity),* }
            }
        }
    };
}

rules! {
    AckRegress "ack-regress" Note;
    AckUnsent "ack-unsent" Error;
    BthReserved "bth-reserved" Note;
    BthVersion "bth-version" Error;
    CaptureGap "capture-gap" Note;
    CmRejected "cm-rejected" Warning;
    CmUnanswered "cm-unanswered" Warning;
    CnpFormat "cnp-format" Warning;
    CnpWithoutCe "cnp-without-ce" Note;
    Duplicate "duplicate" Note;
    IcrcBad "icrc-bad" Error;
    IcrcZero "icrc-zero" Warning;
    Length "length" Error;
    Loss "loss" Warning;
    MessageLength "message-length" Error;
    MigReq "migreq" Note;
    Mtu "mtu" Error;
    Msn "msn" Error;
    Nak "nak" Warning;
    NakPsn "nak-psn" Error;
    NakRepeated "nak-repeated" Note;
    OpcodeSequence "opcode-sequence" Error;
    OpcodeUnknown "opcode-unknown" Note;
    Pad "pad" Error;
    Pkey "pkey" Error;
    PkeyChange "pkey-change" Warning;
    QpnReuse "qpn-reuse" Note;
    ReadDepth "read-depth" Warning;
    ReadReissue "read-reissue" Error;
    ReadReplay "read-replay" Warning;
    Reorder "reorder" Warning;
    RetransmitStart "retransmit-start" Note;
    RetryExceeded "retry-exceeded" Warning;
    Rnr "rnr" Warning;
    RnrBackoff "rnr-backoff" Warning;
    SelectiveRepeat "selective-repeat" Note;
    SpuriousRetransmission "spurious-retransmission" Warning;
    Timeout "timeout" Warning;
    UdpSourcePort "udp-source-port" Note;
}

impl Rule {
    /// It compares packets with each other: a capture that has a sample of them shows nothing of it.
    #[must_use]
    pub const fn needs_all_packets(self) -> bool {
        matches!(
            self,
            Self::AckRegress
                | Self::AckUnsent
                | Self::CaptureGap
                | Self::CmUnanswered
                | Self::CnpWithoutCe
                | Self::Duplicate
                | Self::Loss
                | Self::MessageLength
                | Self::Msn
                | Self::NakPsn
                | Self::NakRepeated
                | Self::OpcodeSequence
                | Self::QpnReuse
                | Self::ReadDepth
                | Self::ReadReissue
                | Self::ReadReplay
                | Self::Reorder
                | Self::RetransmitStart
                | Self::RetryExceeded
                | Self::RnrBackoff
                | Self::SelectiveRepeat
                | Self::SpuriousRetransmission
                | Self::Timeout
        )
    }

    /// Selective repeat and vendors' variants may break it; `--profile gbn` makes it an error.
    #[must_use]
    pub const fn is_go_back_n(self) -> bool {
        matches!(
            self,
            Self::NakRepeated | Self::RetransmitStart | Self::SelectiveRepeat | Self::AckRegress
        )
    }
}

/// A packet's place: its file, Wireshark's frame number in it, and its capture time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// Index of the file.
    pub file: u16,
    /// Frame number, from 1.
    pub packet: u64,
    /// ns since 1970.
    pub time_ns: i64,
}

/// The side of the capture point, as packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Between the sender and the capture point.
    Before,
    /// Between the capture point and the receiver.
    Behind,
}

/// The packet that a finding of [`Rule::Loss`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its PSN; of several packets, the first one's.
    pub psn: u32,
    /// Where it was lost, if the capture shows it.
    pub side: Option<Side>,
    /// It is a response.
    pub is_response: bool,
}

/// One finding.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The check.
    pub rule: Rule,
    /// Severity, after profile and ambiguity.
    pub severity: Severity,
    /// The capture point cannot decide what happened.
    pub ambiguous: bool,
    /// The packet that shows it, or the first one.
    pub at: At,
    /// How often, where one statement stands for a connection or a capture.
    pub count: u64,
    /// The connection it is about.
    pub connection: Option<u32>,
    /// What was lost, and where.
    pub lost: Option<Lost>,
    /// A sentence, with PSNs and packet numbers.
    pub detail: String,
}

/// A list with a limit. It keeps the most severe findings and counts all.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The findings kept, in capture order.
    pub list: Vec<Finding>,
    limit: usize,
    go_back_n: bool,
    /// A full list has only findings of at least this severity.
    least: Severity,
    counts: [[u64; 4]; Rule::ALL.len()],
}

/// What a connection shows many times and a finding says once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repeated {
    /// The first packet.
    pub(crate) first: At,
    pub(crate) count: u64,
}

impl Repeated {
    pub(crate) fn note(&mut self, at: At, count: u64) {
        if self.count == 0 || (count > 0 && at.time_ns < self.first.time_ns) {
            self.first = at;
        }
        self.count += count;
    }
}

impl Findings {
    /// Keeps `limit` findings; with `go_back_n`, rules of Go-Back-N are errors.
    #[must_use]
    pub fn new(limit: usize, go_back_n: bool) -> Self {
        Self {
            list: Vec::new(),
            limit,
            go_back_n,
            least: Severity::Note,
            counts: [[0; 4]; Rule::ALL.len()],
        }
    }

    /// Adds a finding; `detail` is only called if the finding is kept.
    pub fn add(
        &mut self,
        rule: Rule,
        at: At,
        connection: Option<u32>,
        ambiguous: bool,
        detail: impl FnOnce() -> String,
    ) {
        self.add_repeated(rule, Repeated { first: at, count: 1 }, connection, ambiguous, detail);
    }

    /// Adds a finding of [`Rule::Loss`].
    pub(crate) fn add_loss(
        &mut self,
        lost: Lost,
        at: At,
        connection: Option<u32>,
        ambiguous: bool,
        detail: impl FnOnce() -> String,
    ) {
        let once = Repeated { first: at, count: 1 };
        self.push(Rule::Loss, once, Some(lost), connection, ambiguous, detail);
    }

    /// Adds one finding for something that was found `repeated.count` times; nothing if that is 0.
    pub(crate) fn add_repeated(
        &mut self,
        rule: Rule,
        repeated: Repeated,
        connection: Option<u32>,
        ambiguous: bool,
        detail: impl FnOnce() -> String,
    ) {
        if repeated.count > 0 {
            self.push(rule, repeated, None, connection, ambiguous, detail);
        }
    }

    fn push(
        &mut self,
        rule: Rule,
        repeated: Repeated,
        lost: Option<Lost>,
        connection: Option<u32>,
        ambiguous: bool,
        detail: impl FnOnce() -> String,
    ) {
        let Repeated { first: at, count } = repeated;
        let severity = if ambiguous {
            // an ambiguous finding must not fail a check
            rule.severity().min(Severity::Warning)
        } else if self.go_back_n && rule.is_go_back_n() {
            Severity::Error
        } else {
            rule.severity()
        };
        self.counts[rule as usize][severity as usize] += count;
        self.counts[rule as usize][3] += if ambiguous { count } else { 0 };
        if self.list.len() < self.limit {
            // a caller may have taken the list
            self.least = self.least.min(severity);
        }
        if self.list.len() < self.limit || self.make_room(severity) {
            let detail = detail();
            self.list.push(Finding {
                rule,
                severity,
                ambiguous,
                at,
                count,
                connection,
                lost,
                detail,
            });
        }
    }

    /// Takes back what was found by some rules: the capture as a whole explains it.
    pub(crate) fn retract(&mut self, rules: impl Fn(Rule) -> bool) {
        self.list.retain(|one| !rules(one.rule));
        for &rule in Rule::ALL {
            if rules(rule) {
                self.counts[rule as usize] = [0; 4];
            }
        }
    }

    /// Orders the list by time.
    pub(crate) fn sort(&mut self) {
        self.list.sort_by_key(|one| one.at.time_ns);
    }

    /// Drops the last of the least severe findings, if they are less severe; `false` if none is.
    #[cold]
    fn make_room(&mut self, severity: Severity) -> bool {
        if severity <= self.least {
            return false;
        }
        let is = |wanted| move |one: &Finding| one.severity == wanted;
        while self.least < severity {
            if let Some(at) = self.list.iter().rposition(is(self.least)) {
                self.list.remove(at);
                return true;
            }
            // none less severe will be kept from now on
            self.least = match self.least {
                Severity::Note => Severity::Warning,
                Severity::Warning | Severity::Error => Severity::Error,
            };
        }
        false
    }

    /// Counts by rule and severity.
    pub fn counts(&self) -> impl Iterator<Item = (Rule, Severity, u64)> + '_ {
        Rule::ALL.iter().flat_map(move |&rule| {
            [Severity::Note, Severity::Warning, Severity::Error]
                .into_iter()
                .map(move |severity| {
                    (rule, severity, self.counts[rule as usize][severity as usize])
                })
                .filter(|&(_, _, count)| count > 0)
        })
    }

    /// Findings of any severity, including those beyond the limit.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts().map(|(_, _, count)| count).sum()
    }

    /// Ambiguous findings, including those beyond the limit.
    #[must_use]
    pub fn ambiguous(&self) -> u64 {
        self.counts.iter().map(|count| count[3]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn severities(added: &[Rule], limit: usize) -> Vec<(Severity, u64)> {
        let mut findings = Findings::new(limit, false);
        for (packet, rule) in (1..).zip(added) {
            findings.add(*rule, At { packet, ..At::default() }, None, false, String::new);
        }
        assert_eq!(findings.total(), added.len() as u64);
        findings.list.iter().map(|one| (one.severity, one.at.packet)).collect()
    }

    const NOTE: Rule = Rule::Duplicate;
    const WARNING: Rule = Rule::Loss;
    const ERROR: Rule = Rule::Msn;

    #[test]
    fn an_error_after_a_thousand_notes_is_kept() {
        let mut added = vec![NOTE; 1000];
        added.extend([WARNING, NOTE, ERROR, WARNING]);
        let kept = severities(&added, 1000);
        assert_eq!(kept.len(), 1000);
        let (warning, error) = (Severity::Warning, Severity::Error);
        assert_eq!(kept[997..], [(warning, 1001), (error, 1003), (warning, 1004)]);
    }

    #[test]
    fn errors_displace_warnings_and_nothing_displaces_errors() {
        let added = [WARNING, ERROR, NOTE, ERROR, WARNING, ERROR];
        let error = Severity::Error;
        assert_eq!(severities(&added, 2), [(error, 2), (error, 4)]);
        assert_eq!(severities(&added, 0), []);
    }
}
