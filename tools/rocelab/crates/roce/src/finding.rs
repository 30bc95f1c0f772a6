// SPDX-License-Identifier: GPL-2.0-or-later
//! What the checks say: named rules, each with a page in `docs/checks/`.

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; lawful.
    Note,
    /// Lawful, but it costs.
    Warning,
    /// Against the specification.
    Error,
}

impl Severity {
    /// A word for files.
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
        /// A check. Its name is that of its page in `docs/checks/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "docs/checks/ has a page for each")]
        pub enum Rule { $($variant),* }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in files and docs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// How bad a breach is, unless a profile says otherwise.
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
    BthReserved "bth-reserved" Warning;
    BthVersion "bth-version" Error;
    CaptureGap "capture-gap" Note;
    CnpFormat "cnp-format" Warning;
    CnpWithoutCe "cnp-without-ce" Note;
    Duplicate "duplicate" Note;
    IcrcBad "icrc-bad" Error;
    IcrcZero "icrc-zero" Warning;
    Length "length" Error;
    Loss "loss" Warning;
    MessageLength "message-length" Error;
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
    ReadReissue "read-reissue" Error;
    ReadReplay "read-replay" Warning;
    Reorder "reorder" Warning;
    RetransmitStart "retransmit-start" Note;
    Rnr "rnr" Warning;
    RnrBackoff "rnr-backoff" Error;
    SelectiveRepeat "selective-repeat" Note;
    SpuriousRetransmission "spurious-retransmission" Warning;
    Timeout "timeout" Warning;
    UdpSourcePort "udp-source-port" Note;
}

impl Rule {
    /// Selective repeat and vendors' variants may break it; `--profile gbn` makes it an error.
    #[must_use]
    pub const fn is_go_back_n(self) -> bool {
        matches!(
            self,
            Self::NakRepeated | Self::RetransmitStart | Self::SelectiveRepeat | Self::AckRegress
        )
    }
}

/// Which packet: a file and Wireshark's frame number in it, and the capture time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// Index of the file.
    pub file: u16,
    /// Frame number, from 1.
    pub packet: u64,
    /// ns since 1970.
    pub time_ns: i64,
}

/// One finding.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The check.
    pub rule: Rule,
    /// After profile and doubt were taken into account.
    pub severity: Severity,
    /// The capture point cannot decide what happened.
    pub ambiguous: bool,
    /// The packet that shows it.
    pub at: At,
    /// The connection it is about.
    pub connection: Option<u32>,
    /// In words, with PSNs and packet numbers.
    pub detail: String,
}

/// A list with a limit; what goes beyond is counted.
#[derive(Debug)]
pub struct Findings {
    /// The first of them.
    pub list: Vec<Finding>,
    limit: usize,
    go_back_n: bool,
    counts: [[u64; 4]; Rule::ALL.len()],
}

impl Findings {
    /// Keep `limit` findings; with `go_back_n`, rules of Go-Back-N are errors.
    #[must_use]
    pub fn new(limit: usize, go_back_n: bool) -> Self {
        Self { list: Vec::new(), limit, go_back_n, counts: [[0; 4]; Rule::ALL.len()] }
    }

    /// Add a finding; `detail` is only called if it is kept.
    pub fn add(
        &mut self,
        rule: Rule,
        at: At,
        connection: Option<u32>,
        ambiguous: bool,
        detail: impl FnOnce() -> String,
    ) {
        let severity = if ambiguous {
            // not decided: it must not fail a check
            rule.severity().min(Severity::Warning)
        } else if self.go_back_n && rule.is_go_back_n() {
            Severity::Error
        } else {
            rule.severity()
        };
        self.counts[rule as usize][severity as usize] += 1;
        self.counts[rule as usize][3] += u64::from(ambiguous);
        if self.list.len() < self.limit {
            self.list.push(Finding { rule, severity, ambiguous, at, connection, detail: detail() });
        }
    }

    /// How often each rule was found with each severity.
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

    /// Findings of any severity, those beyond the limit included.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts().map(|(_, _, count)| count).sum()
    }

    /// Ambiguous findings, those beyond the limit included.
    #[must_use]
    pub fn ambiguous(&self) -> u64 {
        self.counts.iter().map(|count| count[3]).sum()
    }
}
