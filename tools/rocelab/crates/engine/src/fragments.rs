// SPDX-License-Identifier: GPL-2.0-or-later
//! RoCE packets that are put together from the IP fragments of a capture.

use roce::icrc::{self, Absence, Verifier};
use roce::{FragmentFrame, Icrc, Kind, Packet, Ports, Reassembly, Whole, decode_into};

use crate::batch::Batch;
use crate::copies::place;

/// A packet that was put together.
pub(crate) struct Joined {
    /// The index of its last fragment in the batch.
    pub(crate) record: usize,
    pub(crate) packet: Packet,
    pub(crate) whole: Whole,
    /// Its ICRC is right for the packet as it was before it was fragmented.
    pub(crate) of_other_header: bool,
}

/// How packets are decoded.
pub(crate) struct Decoding<'a> {
    pub(crate) ports: &'a Ports,
    pub(crate) icrc: bool,
    pub(crate) absence: Option<Absence>,
    /// Packets that look corrupted are followed.
    pub(crate) follow_corrupt: bool,
}

/// The fragments of all batches so far.
#[derive(Default)]
pub(crate) struct Fragments {
    reassembly: Reassembly,
    verifier: Verifier,
}

impl Fragments {
    /// Packets whose first fragment did not come.
    pub(crate) fn headless(&self) -> u64 {
        self.reassembly.headless()
    }

    /// The RoCE packets that the fragments of a batch complete, in the order of their last fragments.
    pub(crate) fn take(&mut self, batch: &Batch, decoding: &Decoding<'_>) -> Vec<Joined> {
        let mut joined = Vec::new();
        for &record in &batch.fragments {
            let Some(one) = batch.block.records.get(record as usize) else { continue };
            let bytes = batch.block.frame(one);
            let frame = FragmentFrame {
                link: one.link,
                bytes,
                wire_len: one.wire_len,
                time_ns: one.time_ns,
                place: place(one, bytes),
            };
            let Some(whole) = self.reassembly.add(&frame, decoding.ports) else { continue };
            joined.extend(self.decode(record as usize, one.link, whole, decoding));
        }
        joined
    }

    fn decode(
        &mut self,
        record: usize,
        link: roce::Link,
        whole: Whole,
        decoding: &Decoding<'_>,
    ) -> Option<Joined> {
        let mut packet = Packet::default();
        let kind = decode_into(link, &whole.frame, whole.wire_len, decoding.ports, &mut packet);
        if kind != Kind::Roce {
            return None;
        }
        if let Some(how) = decoding.absence {
            icrc::without_icrc(&mut packet, &whole.frame, how);
        }
        let mut of_other_header = false;
        if decoding.icrc && !packet.without_icrc {
            packet.icrc = self.verifier.check(&packet, &whole.frame);
            if packet.icrc == Icrc::Bad && icrc::made_before_fragmentation(&packet, &whole.frame) {
                packet.icrc = Icrc::Ok;
                of_other_header = true;
            }
        }
        // with a wrong ICRC, its fragments may be those of two packets
        let mixed = packet.icrc == Icrc::Bad
            && !decoding.follow_corrupt
            && icrc::diagnose(&packet, &whole.frame) == Some(icrc::Diagnosis::Corrupted);
        (!mixed).then_some(Joined { record, packet, whole, of_other_header })
    }
}
