// SPDX-License-Identifier: GPL-2.0-or-later
//! Arrow columns of packets, messages, connections and findings. Units are in the names.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder as _, BooleanBuilder, Int64Builder, StringBuilder, UInt8Builder, UInt16Builder,
    UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema};
use roce::finding::Finding;
use roce::flow::{Connection, Message};
use roce::{Icrc, Link, Packet, address, opcode};

use crate::batch::at;
use crate::ethernet::{Ethernet, mac_text};
use crate::read::Record;

/// A builder per column.
macro_rules! columns {
    ($(#[$doc:meta])* $vis:vis $name:ident { $($column:ident: $builder:ty,)* }) => {
        $(#[$doc])*
        #[derive(Default)]
        $vis struct $name { $($column: $builder,)* }

        impl $name {
            fn finish(&mut self) -> Vec<(String, ArrayRef)> {
                vec![$((stringify!($column).to_owned(), Arc::new(self.$column.finish())),)*]
            }
        }
    };
}
pub(crate) use columns;

/// Rows of columns that were not taken yet; `$first` is one of the columns.
macro_rules! rows {
    ($name:ident, $($first:ident).+) => {
        impl $name {
            /// Rows that were not taken yet.
            #[must_use]
            pub fn len(&self) -> usize {
                self.$($first).+.len()
            }

            /// Whether there are no rows.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Takes the rows as one batch.
            ///
            /// # Errors
            /// If columns differ in length, which would be a bug.
            pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
                $crate::tables::record_batch(self.finish())
            }
        }
    };
}
pub(crate) use rows;

/// Every column of every batch is nullable, so that batches share one schema.
pub(crate) fn record_batch(columns: Vec<(String, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    let field =
        |(name, array): &(String, ArrayRef)| Field::new(name, array.data_type().clone(), true);
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

columns! {
    /// One row per RoCE packet.
    pub PacketColumns {
        file: UInt16Builder,
        packet: UInt64Builder,
        time_ns: Int64Builder,
        connection: UInt32Builder,
        wire_bytes: UInt32Builder,
        captured_bytes: UInt32Builder,
        net: StringBuilder,
        src_mac: StringBuilder,
        dst_mac: StringBuilder,
        pcp: UInt8Builder,
        vlans: UInt8Builder,
        src: StringBuilder,
        dst: StringBuilder,
        udp_src_port: UInt16Builder,
        dscp: UInt8Builder,
        ecn: UInt8Builder,
        hop_limit: UInt8Builder,
        opcode: UInt8Builder,
        opcode_name: StringBuilder,
        solicited: BooleanBuilder,
        migreq: BooleanBuilder,
        pad: UInt8Builder,
        tver: UInt8Builder,
        pkey: UInt16Builder,
        fecn: BooleanBuilder,
        becn: BooleanBuilder,
        dqpn: UInt32Builder,
        ack_req: BooleanBuilder,
        psn: UInt32Builder,
        payload_bytes: UInt32Builder,
        icrc: UInt32Builder,
        icrc_ok: BooleanBuilder,
        va: UInt64Builder,
        rkey: UInt32Builder,
        dma_len: UInt32Builder,
        qkey: UInt32Builder,
        sqpn: UInt32Builder,
        syndrome: UInt8Builder,
        msn: UInt32Builder,
        swap_add: UInt64Builder,
        compare: UInt64Builder,
        original: UInt64Builder,
        imm: UInt32Builder,
        inv_rkey: UInt32Builder,
        xrcsrq: UInt32Builder,
        ee_context: UInt32Builder,
        feth: UInt32Builder,
        comment: StringBuilder,
    }
}

rows!(PacketColumns, file);

impl PacketColumns {
    /// Adds a row.
    pub fn push(
        &mut self,
        packet: &Packet,
        frame: &[u8],
        comment: Option<&[u8]>,
        record: &Record,
        connection: Option<u32>,
    ) {
        let at = at(record);
        self.file.append_value(at.file);
        self.packet.append_value(at.packet);
        self.time_ns.append_value(at.time_ns);
        self.connection.append_option(connection);
        self.wire_bytes.append_value(packet.wire_len);
        self.captured_bytes.append_value(record.len);
        self.net.append_value(packet.net.name());
        let ethernet = (record.link == Link::Ethernet).then(|| Ethernet::of(frame)).flatten();
        self.src_mac.append_option(ethernet.map(|ethernet| mac_text(ethernet.source)));
        self.dst_mac.append_option(ethernet.map(|ethernet| mac_text(ethernet.destination)));
        self.pcp.append_option(ethernet.and_then(|ethernet| ethernet.pcp));
        self.vlans.append_value(packet.vlans);
        self.src.append_value(address(packet.src).to_string());
        self.dst.append_value(address(packet.dst).to_string());
        self.udp_src_port.append_option(packet.net.is_v2().then_some(packet.sport));
        self.dscp.append_value(packet.dscp());
        self.ecn.append_value(packet.ecn());
        self.hop_limit.append_value(packet.hop_limit);
        self.opcode.append_value(packet.opcode);
        self.opcode_name.append_option(packet.op().map(|op| op.name));
        self.solicited.append_value(packet.solicited());
        self.migreq.append_value(packet.migreq());
        self.pad.append_value(packet.pad() as u8);
        self.tver.append_value(packet.tver());
        self.pkey.append_value(packet.pkey);
        self.fecn.append_value(packet.fecn());
        self.becn.append_value(packet.becn());
        self.dqpn.append_value(packet.dqpn);
        self.ack_req.append_value(packet.ack_req());
        self.psn.append_value(packet.psn);
        self.payload_bytes.append_value(packet.payload_len);
        self.icrc.append_option(roce::icrc::found(packet, frame).map(u32::swap_bytes));
        self.icrc_ok.append_option(match packet.icrc {
            Icrc::Ok => Some(true),
            Icrc::Bad => Some(false),
            Icrc::Unchecked => None,
        });
        self.push_extended(packet, frame);
        self.comment.append_option(comment.map(String::from_utf8_lossy));
    }

    fn push_extended(&mut self, packet: &Packet, frame: &[u8]) {
        let reth = packet.reth(frame);
        let atomic = packet.atomic(frame);
        let deth = packet.deth(frame);
        let aeth = packet.aeth(frame);
        self.va.append_option(reth.map(|reth| reth.va).or(atomic.map(|atomic| atomic.va)));
        self.rkey.append_option(reth.map(|reth| reth.rkey).or(atomic.map(|atomic| atomic.rkey)));
        self.dma_len.append_option(reth.map(|reth| reth.len));
        self.qkey.append_option(deth.map(|deth| deth.qkey));
        self.sqpn.append_option(deth.map(|deth| deth.src_qp));
        self.syndrome.append_option(aeth.map(|aeth| aeth.syndrome));
        self.msn.append_option(aeth.map(|aeth| aeth.msn));
        self.swap_add.append_option(atomic.map(|atomic| atomic.swap_add));
        self.compare.append_option(atomic.map(|atomic| atomic.compare));
        self.original.append_option(packet.atomic_ack(frame));
        self.imm.append_option(packet.imm(frame));
        self.inv_rkey.append_option(packet.ieth(frame));
        self.xrcsrq.append_option(packet.xrcsrq(frame));
        self.ee_context.append_option(packet.rdeth(frame));
        self.feth.append_option(packet.feth(frame));
    }
}

columns! {
    /// One row per complete message.
    pub MessageColumns {
        connection: UInt32Builder,
        from: StringBuilder,
        net: StringBuilder,
        opcode_name: StringBuilder,
        psn: UInt32Builder,
        packets: UInt32Builder,
        payload_bytes: UInt64Builder,
        wire_bytes: UInt64Builder,
        file: UInt16Builder,
        first_packet: UInt64Builder,
        last_packet: UInt64Builder,
        first_ns: Int64Builder,
        last_ns: Int64Builder,
    }
}

rows!(MessageColumns, connection);

impl MessageColumns {
    /// Adds a row; `opcode_name` is that of the last packet.
    pub fn push(&mut self, message: &Message) {
        self.connection.append_value(message.connection);
        self.from.append_value(if message.from_a { "a" } else { "b" });
        self.net.append_value(message.net.name());
        self.opcode_name.append_option(opcode::lookup(message.opcode).map(|op| op.name));
        self.psn.append_value(message.psn);
        self.packets.append_value(message.packets);
        self.payload_bytes.append_value(message.bytes);
        self.wire_bytes.append_value(message.wire_bytes);
        self.file.append_value(message.last.file);
        self.first_packet.append_value(message.first.packet);
        self.last_packet.append_value(message.last.packet);
        self.first_ns.append_value(message.first.time_ns);
        self.last_ns.append_value(message.last.time_ns);
    }
}

columns! {
    /// One row per connection and direction that was seen.
    pub ConnectionColumns {
        connection: UInt32Builder,
        service: StringBuilder,
        net: StringBuilder,
        paired_by: StringBuilder,
        certainty: StringBuilder,
        a_address: StringBuilder,
        a_qpn: UInt32Builder,
        b_address: StringBuilder,
        b_qpn: UInt32Builder,
        from: StringBuilder,
        packets: UInt64Builder,
        wire_bytes: UInt64Builder,
        payload_bytes: UInt64Builder,
        goodput_bytes: UInt64Builder,
        messages: UInt64Builder,
        retransmitted: UInt64Builder,
        duplicates: UInt64Builder,
        gaps: UInt64Builder,
        missing: UInt64Builder,
        missed_by_capture: UInt64Builder,
        out_of_order: UInt64Builder,
        acks: UInt64Builder,
        naks: UInt64Builder,
        rnr: UInt64Builder,
        ce: UInt64Builder,
        cnp: UInt64Builder,
        max_outstanding: UInt32Builder,
        path_mtu: UInt32Builder,
        latency_count: UInt64Builder,
        latency_p50_ns: UInt64Builder,
        latency_p99_ns: UInt64Builder,
        latency_max_ns: UInt64Builder,
        first_ns: Int64Builder,
        last_ns: Int64Builder,
    }
}

rows!(ConnectionColumns, connection);

impl ConnectionColumns {
    /// Adds a row for each direction.
    pub fn push(&mut self, connection: &Connection) {
        for (from, stats) in ["a", "b"].into_iter().zip(&connection.directions) {
            let Some(stats) = stats else { continue };
            self.connection.append_value(connection.id);
            self.service.append_value(connection.service.name());
            self.net.append_value(connection.net.name());
            self.paired_by.append_option(connection.paired_by.map(roce::flow::PairedBy::name));
            self.certainty.append_value(connection.certainty());
            self.a_address.append_value(address(connection.a.address).to_string());
            self.a_qpn.append_option(connection.a.qpn);
            self.b_address.append_value(address(connection.b.address).to_string());
            self.b_qpn.append_option(connection.b.qpn);
            self.from.append_value(from);
            self.packets.append_value(stats.packets);
            self.wire_bytes.append_value(stats.wire_bytes);
            self.payload_bytes.append_value(stats.payload_bytes);
            self.goodput_bytes.append_value(stats.goodput_bytes);
            self.messages.append_value(stats.messages);
            self.retransmitted.append_value(stats.retransmitted);
            self.duplicates.append_value(stats.duplicates);
            self.gaps.append_value(stats.gaps);
            self.missing.append_value(stats.missing);
            self.missed_by_capture.append_value(stats.missed);
            self.out_of_order.append_value(stats.out_of_order);
            self.acks.append_value(stats.acks);
            self.naks.append_value(stats.naks.iter().sum());
            self.rnr.append_value(stats.rnr);
            self.ce.append_value(stats.ecn[3]);
            self.cnp.append_value(stats.cnp);
            self.max_outstanding.append_value(stats.max_outstanding);
            self.path_mtu.append_value(stats.pmtu);
            let latency = &stats.latency;
            let some = |value| (latency.count() > 0).then_some(value);
            self.latency_count.append_value(latency.count());
            self.latency_p50_ns.append_option(some(latency.quantile(0.5)));
            self.latency_p99_ns.append_option(some(latency.quantile(0.99)));
            self.latency_max_ns.append_option(some(latency.max()));
            self.first_ns.append_value(connection.first_ns);
            self.last_ns.append_value(connection.last_ns);
        }
    }
}

columns! {
    /// One row per finding.
    pub FindingColumns {
        rule: StringBuilder,
        severity: StringBuilder,
        ambiguous: BooleanBuilder,
        count: UInt64Builder,
        file: UInt16Builder,
        packet: UInt64Builder,
        time_ns: Int64Builder,
        connection: UInt32Builder,
        detail: StringBuilder,
    }
}

rows!(FindingColumns, rule);

impl FindingColumns {
    /// Adds a row.
    pub fn push(&mut self, finding: &Finding) {
        self.rule.append_value(finding.rule.name());
        self.severity.append_value(finding.severity.name());
        self.ambiguous.append_value(finding.ambiguous);
        self.count.append_value(finding.count);
        self.file.append_value(finding.at.file);
        self.packet.append_value(finding.at.packet);
        self.time_ns.append_value(finding.at.time_ns);
        self.connection.append_option(finding.connection);
        self.detail.append_value(&finding.detail);
    }
}
