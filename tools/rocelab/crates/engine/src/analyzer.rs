// SPDX-License-Identifier: GPL-2.0-or-later
//! The pipeline: reads blocks, decodes and verifies them in parallel, follows connections in order.

use std::io;

use roce::finding::{At, Rule};
use roce::flow::{Config, Connection, Message, Run, TOGETHER, Tracker};
use roce::icrc::{self, Absence, Diagnosis};
use roce::{Icrc, Interval, Packet, Ports, Series, Varying};

use crate::batch::{Batch, DecodeOptions, PacketRun, at};
use crate::copies::Copies;
use crate::decoded::{Decoded, Next};
use crate::filter::Filter;
use crate::fragments::{Decoding, Fragments, Joined};
use crate::pauses::Pauses;
use crate::read::{
    Block, BlockSource, ExcerptReader, Input, Merge, Opener, ReadError, Reader, Record, Sorted,
};
use crate::read_ahead::ReadAhead;
use crate::tables::PacketColumns;
use crate::totals::Totals;
use crate::wrong_icrcs::WrongIcrcs;

/// Bytes of a batch: it fits into the cache of a core.
const PIECE: usize = 128 << 10;
/// Batches per worker: enough that no thread waits for another.
const BATCHES_PER_WORKER: usize = 8;
const SERIES_LIMIT: u32 = 512;

/// What to analyse and what to keep.
#[derive(Clone, Debug)]
pub struct Options {
    /// UDP ports of RoCE v2 in addition to 4791.
    pub ports: Vec<u16>,
    /// Verify ICRCs.
    pub icrc: bool,
    /// No packet has an ICRC.
    pub absence: Option<Absence>,
    /// Threads: the caller's and others.
    pub threads: usize,
    /// Let one of them read ahead; all captures are files, which never keep a reader waiting.
    pub read_ahead: bool,
    /// Keep a row of each packet.
    pub packets: bool,
    /// Which packets are analysed and which are listed.
    pub filter: Filter,
    /// Limits of the tracker.
    pub tracker: Config,
    /// Put records into the order of their times.
    pub sort: bool,
    /// Added to the times of each file, ns; files without one have right clocks.
    pub offsets_ns: Vec<i64>,
    /// Segments of which one place has seen each packet so often: their copies are not followed. What other
    /// interfaces have seen never is.
    pub looks: Vec<(u64, u32)>,
}

/// A packet with a wrong ICRC.
#[derive(Clone, Copy, Debug)]
pub struct BadIcrc {
    /// The packet.
    pub at: At,
    /// The correct ICRC, as a number whose lowest byte is sent first.
    pub expected: u32,
    /// The ICRC in the frame.
    pub found: u32,
    /// The likely reason.
    pub diagnosis: Diagnosis,
}

impl Default for Options {
    /// As `rocelab analyze --threads 1`.
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            icrc: true,
            absence: None,
            threads: 1,
            read_ahead: false,
            packets: false,
            filter: Filter::default(),
            tracker: Config::default(),
            sort: true,
            offsets_ns: Vec::new(),
            looks: Vec::new(),
        }
    }
}

impl Options {
    fn offset_ns(&self, file: u16) -> i64 {
        self.offsets_ns.get(usize::from(file)).copied().unwrap_or(0)
    }
}

/// Opens a capture, as often as it is called.
pub type InputOpener = Box<dyn Fn() -> io::Result<Input> + Send + Sync>;

fn merge(sources: impl Iterator<Item = BlockSource>, options: &Options) -> Merge {
    let sorted = |(file, source)| Sorted::new(source, options.offset_ns(file), options.sort);
    Merge::new((0..).zip(sources).map(sorted).collect(), PIECE)
}

/// Bytes read at a time of each of so many captures.
#[must_use]
pub const fn piece(captures: usize) -> usize {
    if captures > 8 { PIECE / 2 } else { PIECE }
}

/// An analysis in progress.
pub struct Analyzer {
    options: Options,
    /// What is read here, before and after a thread reads it; one of the two is there.
    decoded: Option<Decoded>,
    ahead: Option<ReadAhead>,
    /// Batches that came back when the thread had ended.
    late: Vec<Batch>,
    /// The last [`Batch::generation`].
    generation: u64,
    /// Sums; complete after [`Analyzer::finish`].
    pub totals: Totals,
    /// Connections and findings.
    pub tracker: Tracker,
    /// Wrong ICRCs, as many as findings are kept.
    pub bad: Vec<BadIcrc>,
    /// All wrong ICRCs, counted and compared.
    pub wrong_icrcs: WrongIcrcs,
    /// Who paused the link.
    pub pauses: Pauses,
    /// RoCE packets over time.
    pub series: Series,
    /// Smallest and largest time, ns since 1970.
    pub times: Option<(i64, i64)>,
    last_ns: i64,
    /// The frame number of the last packet that was followed.
    pub followed: u64,
    /// Packets whose time is before that of the previous packet.
    pub backwards: u64,
    /// Rows of packets that were not taken yet.
    pub packets: PacketColumns,
    copies: Copies,
    fragments: Fragments,
    ports: Ports,
}

impl Analyzer {
    /// Starts an analysis of opened captures.
    #[must_use]
    pub fn new(inputs: Vec<Input>, options: Options) -> Self {
        let piece = piece(inputs.len());
        let captures = (0..).zip(inputs).map(|(file, input)| Reader::new(input, file, piece));
        Self::over(merge(captures.map(BlockSource::Capture), &options), options)
    }

    /// Starts an analysis of captures that are parts of one: each is open only while its time has come.
    #[must_use]
    pub fn of_parts(openers: Vec<InputOpener>, options: Options) -> Self {
        let piece = piece(openers.len());
        let opener = |(file, open): (u16, InputOpener)| -> Opener {
            let (offset_ns, sort) = (options.offset_ns(file), options.sort);
            Box::new(move || {
                let source = BlockSource::Capture(Reader::new(open()?, file, piece));
                Ok(Sorted::new(source, offset_ns, sort))
            })
        };
        let merge = Merge::of_parts((0..).zip(openers).map(opener).collect(), PIECE);
        Self::over(merge, options)
    }

    /// Starts an analysis of the excerpts of captures.
    #[must_use]
    pub fn of_excerpts(inputs: Vec<Input>, options: Options) -> Self {
        let excerpts = (0..).zip(inputs).map(|(file, input)| ExcerptReader::new(input, file));
        Self::over(merge(excerpts.map(BlockSource::Excerpt), &options), options)
    }

    /// Goes on with a capture that was written after all others, when [`Self::step`] has come to their end;
    /// not with [`Options::read_ahead`]. One that is `growing` may end within a record.
    pub fn append(&mut self, input: Input, growing: bool) {
        let Some(decoded) = &mut self.decoded else { return };
        let file = decoded.merge.captures() as u16;
        let reader = Reader::new(input, file, PIECE);
        let source = BlockSource::Capture(if growing { reader.of_growing() } else { reader });
        let offset_ns = self.options.offset_ns(file);
        decoded.merge.append(Sorted::new(source, offset_ns, self.options.sort));
    }

    fn over(merge: Merge, options: Options) -> Self {
        // a thread that reads ahead decodes, too, until there are others for that
        let others = options.threads.max(1) - 1;
        let decoders = if options.read_ahead { others.saturating_sub(1) } else { others };
        let decoding = DecodeOptions {
            ports: Ports::with(&options.ports),
            icrc: options.icrc,
            absence: options.absence,
            filter: options.filter.clone(),
        };
        let batches = (others * BATCHES_PER_WORKER).max(1);
        let decoded = Decoded::new(merge, decoding, decoders, batches);
        // without the thread the result is the same, only later
        let (decoded, ahead) = match options.read_ahead && others > 0 {
            true => ReadAhead::new(decoded),
            false => (Some(decoded), None),
        };
        Self {
            decoded,
            ahead,
            late: Vec::new(),
            generation: 0,
            totals: Totals::default(),
            tracker: Tracker::new(options.tracker.clone()),
            bad: Vec::new(),
            wrong_icrcs: WrongIcrcs::default(),
            pauses: Pauses::default(),
            series: Series::new(SERIES_LIMIT),
            times: None,
            last_ns: i64::MIN,
            followed: 0,
            backwards: 0,
            packets: PacketColumns::default(),
            copies: Copies::new(&options.looks),
            fragments: Fragments::default(),
            ports: Ports::with(&options.ports),
            options,
        }
    }

    /// Errors while reading, by file; while a thread reads ahead, none yet.
    #[must_use]
    pub fn errors(&self) -> &[(u16, ReadError)] {
        self.decoded.as_ref().map_or(&[], |decoded| &decoded.merge.errors)
    }

    /// A signal came while bytes were awaited: it is to be looked at before the next step.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.decoded.as_ref().is_some_and(|decoded| decoded.merge.interrupted())
    }

    /// Ends the captures here: the next steps analyse what was read.
    pub fn stop(&mut self) {
        if let Some(decoded) = &mut self.decoded {
            decoded.merge.stop();
        }
        if let Some(ahead) = &self.ahead {
            ahead.stop();
        }
    }

    /// Earliest and latest time of each file, ns since 1970; while a thread reads ahead, of none.
    pub fn spans_ns(&self) -> impl Iterator<Item = Option<(i64, i64)>> + '_ {
        self.decoded.iter().flat_map(|decoded| decoded.merge.spans_ns())
    }

    /// Records that were put into order, and times that go back by more than a second; while a thread
    /// reads ahead, none.
    #[must_use]
    pub fn disorder(&self) -> (u64, u64) {
        self.decoded.as_ref().map_or((0, 0), |decoded| decoded.merge.disorder())
    }

    /// Copies that were left out: those of other interfaces, and those of mirrored ports.
    #[must_use]
    pub const fn copies(&self) -> (u64, u64) {
        (self.copies.of_interfaces, self.copies.of_mirrors)
    }

    /// How no packet has an ICRC, if the lengths prove that, and no ICRC is right.
    #[must_use]
    pub const fn absence(&self) -> Option<Absence> {
        if self.totals.icrc[1] > 0 { None } else { self.totals.absence.absence() }
    }

    /// Analyses one block, or none if a signal came or a file is slow; `false` at the end.
    pub fn step(&mut self) -> bool {
        let next = match (&mut self.ahead, &mut self.decoded) {
            (Some(ahead), _) => ahead.next(),
            (None, Some(decoded)) => decoded.next(false),
            (None, None) => Next::End,
        };
        match next {
            Next::Batch(mut batch) => {
                self.follow(&mut batch);
                match (&mut self.ahead, &mut self.decoded) {
                    (Some(ahead), _) => self.late.extend(ahead.give_back(batch)),
                    (None, Some(decoded)) => decoded.idle.push(batch),
                    (None, None) => {}
                }
                true
            }
            // nobody hands on
            Next::Undecoded(..) | Next::Nothing => true,
            Next::End => {
                if let Some(ahead) = self.ahead.take() {
                    self.decoded = ahead.end();
                }
                if let Some(decoded) = &mut self.decoded {
                    decoded.idle.append(&mut self.late);
                }
                false
            }
        }
    }

    fn follow(&mut self, batch: &mut Batch) {
        if self.times.is_none() {
            let first_ns = batch.times.map_or(0, |times| times.first);
            self.options.filter.begin(first_ns);
        }
        self.followed = batch.block.records.last().map_or(self.followed, |record| record.number);
        if let Some(times) = batch.times {
            self.backwards += times.backwards + u64::from(times.first < self.last_ns);
            self.last_ns = times.last;
            let (least, greatest) = self.times.unwrap_or((times.least, times.greatest));
            self.times = Some((least.min(times.least), greatest.max(times.greatest)));
        }
        for frame in &batch.pauses {
            self.pauses.add(frame);
            for (key, from_ns, to_ns) in frame.times() {
                self.tracker.pause(key, from_ns, to_ns);
            }
        }
        self.count_over_time(batch);
        let joined = self.join_fragments(batch);
        if batch.generation == 0 {
            self.generation += 1;
            batch.generation = self.generation;
        }
        // a header number, see [`Tracker::packet`]: packets of a generation have 32 bits
        let first = batch.generation << 32;
        let mut joined = joined.iter().peekable();
        for runs in batch.runs.chunks(TOGETHER) {
            let packets = runs.iter().filter_map(|run| batch.packets.get(run.packet as usize));
            self.tracker.look_ahead(packets.map(|(packet, _)| packet));
            for run in runs {
                while let Some(one) = joined.next_if(|one| one.record < run.from as usize) {
                    self.joined(batch, one);
                }
                self.run(batch, run, first + u64::from(run.packet));
            }
        }
        for one in joined {
            self.joined(batch, one);
        }
    }

    /// The packets that the fragments of a batch complete, which are counted.
    fn join_fragments(&mut self, batch: &Batch) -> Vec<Joined> {
        if batch.fragments.is_empty() {
            return Vec::new();
        }
        let decoding = Decoding {
            ports: &self.ports,
            icrc: self.options.icrc,
            absence: self.options.absence,
            follow_corrupt: self.options.tracker.follow_corrupt,
        };
        let mut joined = self.fragments.take(batch, &decoding);
        joined.retain(|one| {
            let time_ns = batch.block.records.get(one.record).map_or(0, |record| record.time_ns);
            let filter = &self.options.filter;
            let admitted = filter.admits_all() || filter.admits(&one.packet, time_ns);
            self.totals.joined(one, admitted);
            admitted
        });
        for one in &joined {
            let payload_bytes = one.packet.payload_len.into();
            let interval = Interval { packets: 1, retransmitted: 0, payload_bytes };
            let record = batch.block.records.get(one.record);
            self.series.add(record.map_or(0, |record| record.time_ns), interval);
        }
        joined
    }

    /// Follows a packet that was put together; it is where its last fragment is.
    fn joined(&mut self, batch: &Batch, one: &Joined) {
        let Some(record) = batch.block.records.get(one.record) else { return };
        let len = one.whole.frame.len() as u32;
        let record = Record { len, wire_len: one.whole.wire_len, elided: 0, ..*record };
        self.generation += 1;
        let headers = self.generation << 32;
        // what it takes on the wire is what its fragments take
        let wire_len = u32::try_from(one.whole.wire_bytes).unwrap_or(u32::MAX);
        let more_frames = u16::try_from(one.whole.fragments.saturating_sub(1)).unwrap_or(u16::MAX);
        let packet = Packet { wire_len, more_frames, ..one.packet };
        self.packet(&packet, headers, &one.whole.frame, &batch.block, &record);
    }

    fn run(&mut self, batch: &Batch, run: &PacketRun, headers: u64) {
        let Some((packet, _)) = batch.packets.get(run.packet as usize) else { return };
        let varying_of = |record| Varying::of(packet, batch.block.frame(record));
        // packets that are listed or wrong are taken one by one
        let short = !self.options.packets && run.icrc != Icrc::Bad;
        let in_time = batch.times.is_some_and(|times| times.backwards == 0);
        let (mut records, mut varying) = (batch.records(run), run.varying);
        let short = short && !records.first().is_some_and(|first| self.copies.concern(first));
        while let Some((first, others)) = records.split_first() {
            let mut taken = 0;
            if short {
                let run = Run { headers, psn: varying.psn, count: records.len(), in_time };
                let record = |index| records.get(index).unwrap_or(first);
                let icrc = |index| varying_of(record(index)).icrc;
                taken = self.tracker.continue_run(&run, |index| at(record(index)), icrc);
            }
            if taken == 0 {
                // copied whole, which is faster than field by field
                let mut packet = *packet;
                (packet.psn, packet.apsn, packet.icrc) = (varying.psn, varying.apsn, run.icrc);
                let bytes = batch.block.frame(first);
                self.packet(&packet, headers, bytes, &batch.block, first);
                records = others;
            } else {
                records = records.get(taken..).unwrap_or_default();
            }
            varying = records.first().map(varying_of).unwrap_or_default();
        }
    }

    /// Adds the batch to the series: at once if the whole block lies within one interval.
    fn count_over_time(&mut self, batch: &Batch) {
        let current = |time_ns| self.series.is_current(time_ns);
        if batch.times.is_some_and(|times| current(times.least) && current(times.greatest)) {
            self.series.add_to_current(Interval {
                packets: batch.count,
                retransmitted: 0,
                payload_bytes: batch.payload_bytes,
            });
            return;
        }
        for run in &batch.runs {
            let Some((packet, _)) = batch.packets.get(run.packet as usize) else { break };
            let interval = |packets: u32| Interval {
                packets,
                retransmitted: 0,
                payload_bytes: u64::from(packet.payload_len) * u64::from(packets),
            };
            let mut records = batch.records(run);
            while let Some((first, others)) = records.split_first() {
                self.series.turn_to(first.time_ns);
                let current = |record: &&Record| self.series.is_current(record.time_ns);
                let count = others.iter().take_while(current).count();
                self.series.add_to_current(interval(count as u32 + 1));
                records = others.get(count..).unwrap_or_default();
            }
        }
    }

    fn packet(
        &mut self,
        packet: &Packet,
        headers: u64,
        bytes: &[u8],
        block: &Block,
        record: &Record,
    ) {
        let at = at(record);
        if self.copies.concern(record) {
            let icrc = icrc::found(packet, bytes).unwrap_or(0);
            if self.copies.is_copy(packet, icrc, record, bytes) {
                return;
            }
        }
        let diagnosis = if packet.icrc == Icrc::Bad { icrc::diagnose(packet, bytes) } else { None };
        let connection = self.tracker.packet(packet, headers, bytes, at, diagnosis);
        if let Some(diagnosis) = diagnosis {
            self.bad_icrc(packet, bytes, at, diagnosis, connection);
        }
        if self.options.packets && self.options.filter.lists(packet, bytes, connection) {
            self.packets.push(packet, bytes, block.comment(record), record, connection);
        }
    }

    #[cold]
    fn bad_icrc(
        &mut self,
        packet: &Packet,
        bytes: &[u8],
        at: At,
        diagnosis: Diagnosis,
        connection: Option<u32>,
    ) {
        let (Some(expected), Some(found)) =
            (icrc::expected(packet, bytes), icrc::found(packet, bytes))
        else {
            return;
        };
        let covered = packet.icrc_off() - usize::from(packet.l3_off);
        self.wrong_icrcs.add(expected, found, covered, diagnosis);
        if diagnosis == Diagnosis::Corrupted {
            self.wrong_icrcs.try_fields(packet, bytes, covered);
        }
        if self.bad.len() < self.options.tracker.max_findings {
            self.bad.push(BadIcrc { at, expected, found, diagnosis });
        }
        let rule = if diagnosis == Diagnosis::Zero { Rule::IcrcZero } else { Rule::IcrcBad };
        self.tracker.findings.add(rule, at, connection, false, || {
            let (found, expected) = (found.swap_bytes(), expected.swap_bytes());
            format!("ICRC {found:#010x}, expected {expected:#010x}: it {}", diagnosis.text())
        });
    }

    /// Messages completed since the last call.
    pub fn take_messages(&mut self) -> Vec<Message> {
        self.tracker.take_messages()
    }

    /// What [`Self::finish`] would give if the captures ended here; the analysis goes on afterwards.
    /// `look` sees the analyzer as it would be then.
    pub fn snapshot<T>(&mut self, look: impl FnOnce(&Self, &[Connection]) -> T) -> T {
        let going_on = self.tracker.clone();
        let connections = self.finish();
        let seen = look(self, &connections);
        self.tracker = going_on;
        seen
    }

    /// How many RoCE packets may not be followed for lack of fragments, or be mixed up.
    fn apart(&self) -> u64 {
        let Totals { roce_fragments, whole, .. } = self.totals;
        if roce_fragments == 0 {
            return 0;
        }
        // in a capture that was sorted, fragments of several packets with one identification may be mixed up
        let mixed = if self.disorder().0 > 0 { whole } else { 0 };
        roce_fragments.saturating_sub(whole) + self.fragments.headless() + mixed
    }

    /// Ends all connections.
    pub fn finish(&mut self) -> Vec<Connection> {
        if self.ahead.is_some() {
            self.stop();
            while self.step() {}
        }
        for batch in self.decoded.iter_mut().flat_map(|decoded| &mut decoded.idle) {
            batch.settle();
            let mut totals = std::mem::take(&mut batch.totals);
            totals.settle();
            self.totals.merge(&totals);
        }
        self.totals.settle();
        self.tracker.evidence.fragmented = self.apart();
        self.tracker.finish()
    }
}
