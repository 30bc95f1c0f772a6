// SPDX-License-Identifier: GPL-2.0-or-later
//! Arrow columns of joined packets (docs/formats/join.md). Units are in the names.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, StringBuilder, UInt8Builder, UInt16Builder, UInt32Builder,
    UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema};
use roce::address;
use roce::join::{Received, Record, Row, Sent};
use roce::opcode;

use super::names::Names;
use crate::tables::columns;

columns! {
    /// One row per frame, and one per record without a frame.
    JoinedColumns {
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
        tx_node: StringBuilder,
        tx_dev: StringBuilder,
        tx_file: UInt16Builder,
        tx_packet: UInt64Builder,
        tx_ns: Int64Builder,
        tx_qpn: UInt32Builder,
        tx_switched: BooleanBuilder,
        tx_drop: StringBuilder,
        tx_wqe_ns: UInt64Builder,
        tx_alloc_ns: UInt64Builder,
        tx_bth_ns: UInt64Builder,
        tx_route_ns: UInt64Builder,
        tx_net_ns: UInt64Builder,
        tx_copy_ns: UInt64Builder,
        tx_icrc_ns: UInt64Builder,
        tx_xmit_ns: UInt64Builder,
        tx_gap_ns: UInt64Builder,
        rx_node: StringBuilder,
        rx_dev: StringBuilder,
        rx_file: UInt16Builder,
        rx_packet: UInt64Builder,
        rx_ns: Int64Builder,
        rx_qpn: UInt32Builder,
        rx_switched: BooleanBuilder,
        rx_drop: StringBuilder,
        rx_parse_ns: UInt64Builder,
        rx_icrc_ns: UInt64Builder,
        rx_queue_ns: UInt64Builder,
        rx_exec_ns: UInt64Builder,
        rx_copy_ns: UInt64Builder,
        rx_cqe_ns: UInt64Builder,
        rx_reply_ns: UInt64Builder,
        rx_gap_ns: UInt64Builder,
    }
}

impl JoinedColumns {
    pub(super) fn push(&mut self, row: &Row, nodes: &Names, devs: &Names, reasons: &Names) {
        self.rows += 1;
        let (wire, key) = (row.wire, &row.key);
        self.wire_packet.append_option(wire.map(|frame| frame.at.packet));
        self.wire_ns.append_option(wire.map(|frame| frame.at.time_ns));
        self.wire_bytes.append_option(wire.map(|frame| frame.wire_len));
        let payload = wire.map(|frame| frame.payload_len);
        let recorded = row.tx.or(row.rx).map(|record| record.payload_len);
        self.payload_bytes.append_option(payload.or(recorded));
        self.net.append_value(key.net.name());
        self.src.append_value(address(key.src).to_string());
        self.dst.append_value(address(key.dst).to_string());
        self.dqpn.append_value(key.dqpn);
        let datagram = opcode::Service::of(key.opcode) == opcode::Service::Ud;
        self.sqpn.append_option(datagram.then_some(key.sqpn));
        self.psn.append_value(key.psn);
        self.opcode.append_value(key.opcode);
        self.opcode_name.append_option(opcode::lookup(key.opcode).map(|op| op.name));
        self.again.append_value(row.again);
        self.sent.append_option(row.sent.map(Sent::name));
        self.received.append_option(row.received.map(Received::name));
        self.push_tx(row.tx.as_ref(), nodes, devs, reasons);
        self.push_rx(row.rx.as_ref(), nodes, devs, reasons);
    }

    fn push_tx(&mut self, one: Option<&Record>, nodes: &Names, devs: &Names, reasons: &Names) {
        self.tx_node.append_option(one.and_then(|record| nodes.name(record.node)));
        self.tx_dev.append_option(one.and_then(|record| devs.name(record.dev)));
        self.tx_file.append_option(one.map(|record| record.at.file));
        self.tx_packet.append_option(one.map(|record| record.at.packet));
        self.tx_ns.append_option(one.map(|record| record.at.time_ns));
        self.tx_qpn.append_option(one.and_then(|record| record.qpn));
        self.tx_gap_ns.append_option(one.and_then(|record| record.gap_ns));
        self.tx_switched.append_option(one.map(|record| record.switched));
        self.tx_drop.append_option(one.and_then(|record| reasons.name(record.drop?)));
        let stages = [
            &mut self.tx_wqe_ns,
            &mut self.tx_alloc_ns,
            &mut self.tx_bth_ns,
            &mut self.tx_route_ns,
            &mut self.tx_net_ns,
            &mut self.tx_copy_ns,
            &mut self.tx_icrc_ns,
            &mut self.tx_xmit_ns,
        ];
        for (stage, column) in stages.into_iter().enumerate() {
            column.append_option(one.and_then(|record| record.stages.get(stage)));
        }
    }

    fn push_rx(&mut self, one: Option<&Record>, nodes: &Names, devs: &Names, reasons: &Names) {
        self.rx_node.append_option(one.and_then(|record| nodes.name(record.node)));
        self.rx_dev.append_option(one.and_then(|record| devs.name(record.dev)));
        self.rx_file.append_option(one.map(|record| record.at.file));
        self.rx_packet.append_option(one.map(|record| record.at.packet));
        self.rx_ns.append_option(one.map(|record| record.at.time_ns));
        self.rx_qpn.append_option(one.and_then(|record| record.qpn));
        self.rx_gap_ns.append_option(one.and_then(|record| record.gap_ns));
        self.rx_switched.append_option(one.map(|record| record.switched));
        self.rx_drop.append_option(one.and_then(|record| reasons.name(record.drop?)));
        let stages = [
            &mut self.rx_parse_ns,
            &mut self.rx_icrc_ns,
            &mut self.rx_queue_ns,
            &mut self.rx_exec_ns,
            &mut self.rx_copy_ns,
            &mut self.rx_cqe_ns,
            &mut self.rx_reply_ns,
        ];
        for (stage, column) in stages.into_iter().enumerate() {
            column.append_option(one.and_then(|record| record.stages.get(stage)));
        }
    }
}
