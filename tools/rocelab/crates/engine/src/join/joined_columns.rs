// SPDX-License-Identifier: GPL-2.0-or-later
//! Arrow columns of joined packets (docs/formats/join.md). Units are in the names.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder as _, BooleanBuilder, Int64Builder, StringBuilder, UInt8Builder, UInt16Builder,
    UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;
use roce::address;
use roce::join::{RX_STAGES, Received, Record, Row, Sent, TX_STAGES};
use roce::opcode;

use super::name_table::NameTable;
use crate::tables::{columns, rows};

columns! {
    /// The packet and its frame.
    FrameColumns {
        wire_packet: UInt64Builder,
        wire_ns: Int64Builder,
        wire_bytes: UInt32Builder,
        payload_bytes: UInt32Builder,
        net: StringBuilder,
        src: StringBuilder,
        dst: StringBuilder,
        dqpn: UInt32Builder,
        sqpn: UInt32Builder,
        psn: UInt32Builder,
        opcode: UInt8Builder,
        opcode_name: StringBuilder,
        again: UInt32Builder,
        sent: StringBuilder,
        received: StringBuilder,
    }
}

columns! {
    /// The record of one driver, without its stages.
    RecordColumns {
        node: StringBuilder,
        dev: StringBuilder,
        file: UInt16Builder,
        packet: UInt64Builder,
        ns: Int64Builder,
        qpn: UInt32Builder,
        switched: BooleanBuilder,
        drop: StringBuilder,
    }
}

/// The record of one driver; the names of the columns start with the direction.
struct EndColumns {
    direction: &'static str,
    record: RecordColumns,
    stages: Vec<(&'static str, UInt64Builder)>,
    gap_ns: UInt64Builder,
}

impl EndColumns {
    fn new(direction: &'static str, stages: &[&'static str]) -> Self {
        Self {
            direction,
            record: RecordColumns::default(),
            stages: stages.iter().map(|name| (*name, UInt64Builder::default())).collect(),
            gap_ns: UInt64Builder::default(),
        }
    }

    fn push(&mut self, record: Option<&Record>, names: &RecordNames) {
        let columns = &mut self.record;
        columns.node.append_option(record.and_then(|record| names.nodes.name(record.node)));
        columns.dev.append_option(record.and_then(|record| names.devs.name(record.dev)));
        columns.file.append_option(record.map(|record| record.at.file));
        columns.packet.append_option(record.map(|record| record.at.packet));
        columns.ns.append_option(record.map(|record| record.at.time_ns));
        columns.qpn.append_option(record.and_then(|record| record.qpn));
        columns.switched.append_option(record.map(|record| record.switched));
        columns.drop.append_option(record.and_then(|record| names.reasons.name(record.drop?)));
        for (stage, (_, column)) in self.stages.iter_mut().enumerate() {
            column.append_option(record.and_then(|record| record.stages.get(stage)));
        }
        self.gap_ns.append_option(record.and_then(|record| record.gap_ns));
    }

    fn finish(&mut self) -> Vec<(String, ArrayRef)> {
        let named = |name: &str| format!("{}_{name}", self.direction);
        let record = self.record.finish().into_iter().map(|(name, array)| (named(&name), array));
        let mut columns: Vec<(String, ArrayRef)> = record.collect();
        for (stage, column) in &mut self.stages {
            columns.push((named(&format!("{stage}_ns")), Arc::new(column.finish())));
        }
        columns.push((named("gap_ns"), Arc::new(self.gap_ns.finish())));
        columns
    }
}

/// Names that records refer to by number.
#[derive(Debug, Default)]
pub(super) struct RecordNames {
    pub(super) nodes: NameTable,
    pub(super) devs: NameTable,
    pub(super) reasons: NameTable,
}

/// One row per frame, and one per record without a frame.
pub struct JoinedColumns {
    frame: FrameColumns,
    tx: EndColumns,
    rx: EndColumns,
}

impl Default for JoinedColumns {
    fn default() -> Self {
        Self {
            frame: FrameColumns::default(),
            tx: EndColumns::new("tx", &TX_STAGES),
            rx: EndColumns::new("rx", &RX_STAGES),
        }
    }
}

rows!(JoinedColumns, frame.psn);

impl JoinedColumns {
    fn finish(&mut self) -> Vec<(String, ArrayRef)> {
        let mut columns = self.frame.finish();
        columns.extend(self.tx.finish());
        columns.extend(self.rx.finish());
        columns
    }

    pub(super) fn push(&mut self, row: &Row, names: &RecordNames) {
        let (wire, key) = (row.wire, &row.key);
        let frame = &mut self.frame;
        frame.wire_packet.append_option(wire.map(|frame| frame.at.packet));
        frame.wire_ns.append_option(wire.map(|frame| frame.at.time_ns));
        frame.wire_bytes.append_option(wire.map(|frame| frame.wire_len));
        let payload = wire.map(|frame| frame.payload_len);
        let recorded = row.tx.or(row.rx).map(|record| record.payload_len);
        frame.payload_bytes.append_option(payload.or(recorded));
        frame.net.append_value(key.net.name());
        frame.src.append_value(address(key.src).to_string());
        frame.dst.append_value(address(key.dst).to_string());
        frame.dqpn.append_value(key.dqpn);
        let datagram = opcode::Service::of(key.opcode) == opcode::Service::Ud;
        frame.sqpn.append_option(datagram.then_some(key.sqpn));
        frame.psn.append_value(key.psn);
        frame.opcode.append_value(key.opcode);
        frame.opcode_name.append_option(opcode::lookup(key.opcode).map(|op| op.name));
        frame.again.append_value(row.again);
        frame.sent.append_option(row.sent.map(Sent::name));
        frame.received.append_option(row.received.map(Received::name));
        self.tx.push(row.tx.as_ref(), names);
        self.rx.push(row.rx.as_ref(), names);
    }
}
