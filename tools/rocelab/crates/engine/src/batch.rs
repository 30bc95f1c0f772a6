// SPDX-License-Identifier: GPL-2.0-or-later
//! One batch of the pipeline: a block of records, decoded and verified by any thread.

use roce::finding::At;
use roce::icrc::{Absence, Signs, Verifier, without_icrc};
use roce::{HeaderCache, Hit, ICRC_LEN, Icrc, Kind, Packet, Ports, Varying, decode_into};

use crate::filter::Filter;
use crate::pauses::PauseFrame;
use crate::read::{Block, Record};
use crate::totals::Totals;

/// Options of decoding, the same for all batches.
#[derive(Debug)]
pub(crate) struct DecodeOptions {
    pub(crate) ports: Ports,
    pub(crate) icrc: bool,
    /// No packet has an ICRC.
    pub(crate) absence: Option<Absence>,
    pub(crate) filter: Filter,
}

/// Times of the records of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) least: i64,
    pub(crate) greatest: i64,
    /// Records whose time is before that of the previous one.
    pub(crate) backwards: u64,
}

/// Consecutive RoCE packets with the same headers: one packet, or several with consecutive PSNs and no
/// wrong ICRC.
#[derive(Clone, Copy)]
pub(crate) struct PacketRun {
    /// Index of the first record.
    pub(crate) from: u32,
    pub(crate) count: u32,
    /// Index of a packet with the same headers except [`Varying`].
    pub(crate) packet: u32,
    /// The varying fields of the first packet.
    pub(crate) varying: Varying,
    pub(crate) icrc: Icrc,
}

/// A block and its packets. Batches are reused.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) block: Block,
    /// RoCE packets in capture order.
    pub(crate) runs: Vec<PacketRun>,
    /// The packets that [`PacketRun::packet`] refers to, of this block and of earlier ones, and how many
    /// of each are not in [`Self::totals`] yet.
    pub(crate) packets: Vec<(Packet, u64)>,
    /// Which packets these are: another number, not 0, whenever they were forgotten. 0: none was given yet.
    pub(crate) generation: u64,
    pub(crate) times: Option<Times>,
    /// Number of RoCE packets.
    pub(crate) count: u32,
    /// Message bytes of the RoCE packets.
    pub(crate) payload_bytes: u64,
    /// Indexes of the records that are fragments of UDP packets.
    pub(crate) fragments: Vec<u32>,
    /// Flow control frames in capture order.
    pub(crate) pauses: Vec<PauseFrame>,
    /// Sums over all blocks that this batch has held.
    pub(crate) totals: Totals,
    verifier: Verifier,
    cache: HeaderCache,
    /// Packets to unlisted ports, or not looked into, that may still be verified in this block.
    hints: u32,
}

/// With as many packets the next block begins anew: all of them fit into the header cache.
const MAX_PACKETS: usize = 1024;
/// Packets to unlisted ports, or not looked into, verified in a block: enough for a hint, and cheap on other traffic.
const HINTS: u32 = 16;

impl Batch {
    pub(crate) fn decode(&mut self, options: &DecodeOptions) {
        self.runs.clear();
        self.pauses.clear();
        self.fragments.clear();
        if self.packets.len() >= MAX_PACKETS {
            self.settle();
            self.packets.clear();
            self.cache.clear();
            self.generation = 0;
        }
        self.count = 0;
        self.hints = HINTS;
        self.payload_bytes = 0;
        self.times = Times::of(&self.block.records);
        let mut from = 0;
        while let Some(&Record { len, wire_len, .. }) = self.block.records.get(from) {
            let count = self.take(from, options);
            from += count;
            self.totals.packets += count as u64;
            self.totals.bytes += count as u64 * u64::from(wire_len);
            self.totals.truncated += if len < wire_len { count as u64 } else { 0 };
        }
    }

    /// Completes [`Self::totals`].
    pub(crate) fn settle(&mut self) {
        for (packet, count) in self.packets.iter_mut().filter(|(_, count)| *count > 0) {
            self.totals.roce(packet, std::mem::take(count));
        }
    }

    /// Takes the frame at `from` and the frames that continue its run; returns their number.
    #[inline]
    fn take(&mut self, from: usize, options: &DecodeOptions) -> usize {
        let Self {
            block, runs, packets, fragments, pauses, totals, verifier, cache, hints, ..
        } = self;
        let Some((record, others)) = block.records.get(from..).and_then(<[_]>::split_first) else {
            return 0;
        };
        let frame = block.frame(record);
        let verified = record.verified && options.absence.is_none();
        let check = options.icrc && !verified;
        // the cache knows frames by their lengths
        let whole = record.elided == 0;
        let known =
            if whole { cache.lookup(record.link, frame, record.wire_len, check) } else { None };
        let hit = match known {
            Some(hit) if verified => Hit { icrc: Icrc::Ok, ..hit },
            Some(hit) => hit,
            None => {
                match decode(record, frame, options, packets, cache, verifier, &mut totals.absence)
                {
                    Ok(decoded) => decoded,
                    Err(kind) => {
                        match kind {
                            Kind::OtherPort(port) if *hints > 0 => {
                                *hints -= 1;
                                totals.hint(port, record.link, frame, record.wire_len);
                            }
                            Kind::Unread(layer) if *hints > 0 => {
                                *hints -= 1;
                                totals.seek(layer, frame);
                            }
                            _ => {}
                        }
                        if matches!(kind, Kind::Fragment { .. }) {
                            fragments.push(from as u32);
                        }
                        totals.not_roce(kind);
                        if matches!(kind, Kind::Pfc(_) | Kind::Pause) {
                            pauses.extend(PauseFrame::of(kind, record.link, frame, at(record)));
                        }
                        return 1;
                    }
                }
            }
        };
        let Hit { index, varying, icrc } = hit;
        let Some((packet, same)) = packets.get_mut(index as usize) else { return 1 };
        let all = options.filter.admits_all();
        if !all && !options.filter.admits(packet, record.time_ns) {
            totals.other += 1;
            return 1;
        }
        let mut count = 1;
        // flows that alternate mostly differ in packet length
        let as_long = |next: &Record| (next.len, next.wire_len) == (record.len, record.wire_len);
        if whole && others.first().is_some_and(as_long) && all && icrc != Icrc::Bad {
            let same_kind = others
                .iter()
                .take_while(|next| next.elided == 0 && next.verified == record.verified);
            let frames = same_kind.map(|next| (next.link, block.frame(next), next.wire_len));
            count += cache.run(hit, frames, check);
        }
        if icrc == packet.icrc {
            *same += count as u64;
        } else {
            totals.roce(&Packet { icrc, ..*packet }, count as u64);
        }
        runs.push(PacketRun {
            from: from as u32,
            count: count as u32,
            packet: index,
            varying,
            icrc,
        });
        self.count += count as u32;
        self.payload_bytes += u64::from(packet.payload_len) * count as u64;
        count
    }

    pub(crate) fn records(&self, run: &PacketRun) -> &[Record] {
        let from = run.from as usize;
        self.block.records.get(from..from + run.count as usize).unwrap_or_default()
    }
}

/// Where a record is.
pub(crate) fn at(record: &Record) -> At {
    At { file: record.file, packet: record.number, time_ns: record.time_ns }
}

/// Decodes a frame whose headers are not cached.
#[inline(never)]
fn decode(
    record: &Record,
    frame: &[u8],
    options: &DecodeOptions,
    packets: &mut Vec<(Packet, u64)>,
    cache: &mut HeaderCache,
    verifier: &mut Verifier,
    absence: &mut Signs,
) -> Result<Hit, Kind> {
    let index = packets.len() as u32;
    // decoded in place: a packet is too large to move
    packets.push((Packet::default(), 0));
    let Some((packet, _)) = packets.last_mut() else { return Err(Kind::Other) };
    let kind = decode_into(record.link, frame, record.wire_len, &options.ports, packet);
    if kind != Kind::Roce {
        packets.pop();
        return Err(kind);
    }
    match options.absence {
        Some(how) => without_icrc(packet, frame, how),
        None => absence.add(packet, frame),
    }
    if record.elided > 0 {
        packet.elided = true;
        let captured = packet.icrc_off() + ICRC_LEN <= record.len as usize;
        packet.complete = captured && !packet.without_icrc;
    } else {
        cache.insert(record.link, frame, packet, index);
    }
    if record.verified && !packet.without_icrc {
        packet.icrc = Icrc::Ok;
    } else if options.icrc && !packet.elided {
        packet.icrc = verifier.check(packet, frame);
    }
    Ok(Hit { index, varying: Varying::of(packet, frame), icrc: packet.icrc })
}

impl Times {
    fn of(records: &[Record]) -> Option<Self> {
        let (first, last) = (records.first()?.time_ns, records.last()?.time_ns);
        let pairs = records.iter().zip(records.iter().skip(1));
        let backwards = pairs.map(|(one, next)| u64::from(next.time_ns < one.time_ns)).sum();
        let mut times = Self { first, last, least: first, greatest: last, backwards };
        if backwards > 0 {
            for Record { time_ns, .. } in records {
                times.least = times.least.min(*time_ns);
                times.greatest = times.greatest.max(*time_ns);
            }
        }
        Some(times)
    }
}
