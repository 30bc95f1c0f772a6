// SPDX-License-Identifier: GPL-2.0-or-later
//! What Python sees: [`Analysis`] runs the engine piece by piece, [`Table`] hands out Arrow.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use roce::finding::Finding;
use roce::flow::{Config, Connection, Stats};
use roce::{NAK_NAMES, Net, Series, address, opcode};

use crate::engine::{Engine, Options};
use crate::read::{Counter, Input, open_compressed};
use crate::select::Select;
use crate::tables::{ConnectionColumns, FindingColumns, MessageColumns};
use crate::totals::ETHERNET_EXTRA;

const STREAM: &CStr = c"arrow_array_stream";

/// Between two steps Python looks at its signals, at progress, and at full tables.
const BLOCKS_PER_STEP: usize = 8;

pub(crate) fn bug(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Batches of one schema; anything that speaks Arrow's PyCapsule interface takes them uncopied.
#[pyclass(frozen, module = "rocelab._core")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(batches: Vec<RecordBatch>) -> PyResult<Self> {
        let schema = batches.first().map(RecordBatch::schema);
        let schema = schema.ok_or_else(|| PyRuntimeError::new_err("a table needs a batch"))?;
        Ok(Self { schema, batches })
    }
}

#[pymethods]
impl Table {
    /// Rows of all batches.
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The Arrow C stream of the table.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // the interface allows ignoring a wish for other types
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}

/// The BTH opcodes of the specification: code and name.
#[pyfunction]
pub(crate) fn opcodes() -> Vec<(u8, &'static str)> {
    opcode::all().iter().map(|op| (op.code, op.name)).collect()
}

/// An analysis under way. Call `step` until it is false, then `finish`.
#[pyclass(module = "rocelab._core")]
pub(crate) struct Analysis {
    engine: Engine,
    taken: Vec<Counter>,
    connections: Vec<Connection>,
    messages: MessageColumns,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Analysis {
    /// Open captures by path; `-` is standard input. OSError if one cannot be opened.
    #[new]
    #[pyo3(signature = (paths, *, ports=Vec::new(), icrc=true, threads=1, packets=false,
        messages=false, max_findings=1000, max_connections=4096, go_back_n=false,
        addresses=Vec::new(), time_ns=None, qpns=Vec::new(), opcodes=Vec::new(),
        connections=Vec::new()))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        paths: Vec<std::path::PathBuf>,
        ports: Vec<u16>,
        icrc: bool,
        threads: usize,
        packets: bool,
        messages: bool,
        max_findings: usize,
        max_connections: usize,
        go_back_n: bool,
        addresses: Vec<[u8; 16]>,
        time_ns: Option<(i64, i64)>,
        qpns: Vec<u32>,
        opcodes: Vec<u8>,
        connections: Vec<u32>,
    ) -> PyResult<Self> {
        if paths.is_empty() || paths.len() > usize::from(u16::MAX) {
            return Err(PyValueError::new_err("between 1 and 65535 captures"));
        }
        let mut inputs = Vec::new();
        let mut taken = Vec::new();
        for path in &paths {
            let raw: Input = if path.as_os_str() == "-" {
                Box::new(io::stdin())
            } else {
                Box::new(File::open(path)?)
            };
            let counter = Counter::default();
            inputs.push(open_compressed(raw, Arc::clone(&counter))?);
            taken.push(counter);
        }
        let mut select = Select::default();
        select.addresses = addresses;
        select.time_ns = time_ns;
        select.qpns = qpns;
        select.opcodes = opcodes;
        select.connections = connections;
        let tracker = Config {
            max_findings,
            max_connections,
            go_back_n,
            keep_messages: messages,
            ..Config::default()
        };
        let options = Options { ports, icrc, threads, packets, select, tracker };
        Ok(Self {
            engine: Engine::new(inputs, options),
            taken,
            connections: Vec::new(),
            messages: MessageColumns::default(),
            batches: Vec::new(),
        })
    }

    /// Analyse the next pieces; False at the end.
    fn step(&mut self, py: Python<'_>) -> bool {
        py.detach(|| {
            let mut more = true;
            for _ in 0..BLOCKS_PER_STEP {
                more = self.engine.step();
                for message in self.engine.take_messages() {
                    self.messages.push(&message);
                }
                if !more {
                    break;
                }
            }
            more
        })
    }

    /// Bytes read of the files, compressed as they are.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.taken.iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }

    /// Rows of the packet table that were not taken yet.
    #[getter]
    fn pending_packets(&self) -> usize {
        self.engine.packets.len()
    }

    /// Rows of the message table that were not taken yet.
    #[getter]
    fn pending_messages(&self) -> usize {
        self.messages.len()
    }

    /// The packet rows since the last call.
    fn take_packets(&mut self) -> PyResult<Table> {
        Table::new(vec![self.engine.packets.take().map_err(bug)?])
    }

    /// The message rows since the last call.
    fn take_messages(&mut self) -> PyResult<Table> {
        Table::new(vec![self.messages.take().map_err(bug)?])
    }

    /// Keep the packet rows so far as a batch of [`Self::packets`].
    fn keep_packets(&mut self) -> PyResult<()> {
        self.batches.push(self.engine.packets.take().map_err(bug)?);
        Ok(())
    }

    /// All batches kept by `keep_packets`.
    fn packets(&mut self) -> PyResult<Table> {
        self.keep_packets()?;
        Table::new(std::mem::take(&mut self.batches))
    }

    /// End all connections and give the whole result, as documented in docs/formats/analysis.md
    /// (without `schema`, and `file` as an index).
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.connections = self.engine.finish();
        for message in self.engine.take_messages() {
            self.messages.push(&message);
        }
        let result = PyDict::new(py);
        result.set_item("input", self.input(py)?)?;
        result.set_item("roce", self.roce(py)?)?;
        result.set_item("icrc", self.icrc(py)?)?;
        result.set_item("opcodes", self.opcode_counts(py)?)?;
        result.set_item("congestion", self.congestion(py)?)?;
        result.set_item("overhead", self.overhead(py)?)?;
        result.set_item("series", series(py, &self.engine.series)?)?;
        let rows = PyList::empty(py);
        for connection in &self.connections {
            rows.append(connection_row(py, connection)?)?;
        }
        result.set_item("connections", rows)?;
        result.set_item("connections_unreported", self.engine.tracker.unreported)?;
        result.set_item("connections_evicted", self.engine.tracker.evicted)?;
        let rows = PyList::empty(py);
        for finding in &self.engine.tracker.findings.list {
            rows.append(finding_row(py, finding)?)?;
        }
        result.set_item("findings", rows)?;
        result.set_item("findings_total", self.engine.tracker.findings.total())?;
        result.set_item("findings_ambiguous", self.engine.tracker.findings.ambiguous())?;
        let counts = PyList::empty(py);
        for (rule, severity, count) in self.engine.tracker.findings.counts() {
            let row = PyDict::new(py);
            row.set_item("rule", rule.name())?;
            row.set_item("severity", severity.name())?;
            row.set_item("count", count)?;
            counts.append(row)?;
        }
        result.set_item("finding_counts", counts)?;
        Ok(result)
    }

    /// The connection table; after `finish`.
    fn connections(&self) -> PyResult<Table> {
        let mut columns = ConnectionColumns::default();
        for connection in &self.connections {
            columns.push(connection);
        }
        Table::new(vec![columns.take().map_err(bug)?])
    }

    /// The finding table; after `finish`.
    fn findings(&self) -> PyResult<Table> {
        let mut columns = FindingColumns::default();
        for finding in &self.engine.tracker.findings.list {
            columns.push(finding);
        }
        Table::new(vec![columns.take().map_err(bug)?])
    }
}

impl Analysis {
    fn input<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = &self.engine.totals;
        let input = PyDict::new(py);
        input.set_item("packets", totals.packets)?;
        input.set_item("bytes", totals.bytes)?;
        input.set_item("truncated", totals.truncated)?;
        input.set_item("cut_headers", totals.cut)?;
        input.set_item("other", totals.other)?;
        input.set_item("first_ns", self.engine.times.map(|times| times.0))?;
        input.set_item("last_ns", self.engine.times.map(|times| times.1))?;
        input.set_item("times_backwards", self.engine.backwards)?;
        let errors = PyList::empty(py);
        for (file, error) in self.engine.errors() {
            let row = PyDict::new(py);
            row.set_item("file", file)?;
            row.set_item("error", error.to_string())?;
            errors.append(row)?;
        }
        input.set_item("errors", errors)?;
        Ok(input)
    }

    fn roce<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = &self.engine.totals;
        let roce = PyDict::new(py);
        roce.set_item("packets", totals.roce.iter().sum::<u64>())?;
        for net in [Net::V1, Net::V2Ipv4, Net::V2Ipv6] {
            roce.set_item(net.name(), totals.roce[net as usize])?;
        }
        roce.set_item("vlan", totals.vlan)?;
        Ok(roce)
    }

    fn icrc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let [unchecked, ok, bad] = self.engine.totals.icrc;
        let icrc = PyDict::new(py);
        icrc.set_item("ok", ok)?;
        icrc.set_item("bad", bad)?;
        icrc.set_item("unchecked", unchecked)?;
        let rows = PyList::empty(py);
        for one in &self.engine.bad {
            let row = PyDict::new(py);
            row.set_item("file", one.at.file)?;
            row.set_item("packet", one.at.packet)?;
            row.set_item("expected", format!("0x{:08x}", one.expected))?;
            row.set_item("found", format!("0x{:08x}", one.found))?;
            row.set_item("diagnosis", one.diagnosis.name())?;
            rows.append(row)?;
        }
        icrc.set_item("bad_packets", rows)?;
        Ok(icrc)
    }

    fn opcode_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = &self.engine.totals;
        let counts = PyDict::new(py);
        for op in opcode::all() {
            let count = totals.opcodes[op.index()];
            if count > 0 {
                counts.set_item(op.name, count)?;
            }
        }
        for (code, &count) in totals.unknown.iter().enumerate() {
            if count > 0 {
                counts.set_item(format!("UNKNOWN_0x{code:02x}"), count)?;
            }
        }
        Ok(counts)
    }

    fn congestion<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = &self.engine.totals;
        let [not_ect, ect1, ect0, ce] = totals.ecn;
        let congestion = PyDict::new(py);
        let ecn = PyDict::new(py);
        for (name, count) in [("not_ect", not_ect), ("ect0", ect0), ("ect1", ect1), ("ce", ce)] {
            ecn.set_item(name, count)?;
        }
        congestion.set_item("ecn", ecn)?;
        let dscp = PyDict::new(py);
        for (codepoint, &count) in totals.dscp.iter().enumerate() {
            if count > 0 {
                dscp.set_item(codepoint.to_string(), count)?;
            }
        }
        congestion.set_item("dscp", dscp)?;
        congestion.set_item("pfc", totals.pfc)?;
        congestion.set_item("pfc_classes", totals.pfc_classes.to_vec())?;
        congestion.set_item("pause", totals.pause)?;
        Ok(congestion)
    }

    fn overhead<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = &self.engine.totals;
        let overhead = PyDict::new(py);
        overhead.set_item("wire_bytes", totals.wire_bytes)?;
        overhead.set_item("payload_bytes", totals.payload_bytes)?;
        let headers = PyDict::new(py);
        for (key, bytes) in totals.by_header() {
            headers.set_item(key, bytes)?;
        }
        overhead.set_item("by_header", headers)?;
        let packets: u64 = totals.roce.iter().sum();
        overhead.set_item("preamble_fcs_gap_bytes", packets * ETHERNET_EXTRA)?;
        let rows = PyList::empty(py);
        for (net, up_to, class) in self.engine.tracker.efficiency.rows() {
            let row = PyDict::new(py);
            row.set_item("net", net.name())?;
            row.set_item("message_bytes_up_to", up_to)?;
            row.set_item("messages", class.messages)?;
            row.set_item("packets", class.packets)?;
            row.set_item("payload_bytes", class.payload_bytes)?;
            row.set_item("wire_bytes", class.wire_bytes)?;
            row.set_item(
                "efficiency",
                class.payload_bytes as f64 / class.wire_bytes.max(1) as f64,
            )?;
            rows.append(row)?;
        }
        overhead.set_item("by_message_size", rows)?;
        Ok(overhead)
    }
}

fn series<'py>(py: Python<'py>, series: &Series) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    let some = !series.intervals.is_empty();
    result.set_item("start_ns", some.then_some(series.start_ns))?;
    result.set_item("step_ns", series.step_ns)?;
    let column =
        |of: fn(&roce::Interval) -> u64| -> Vec<u64> { series.intervals.iter().map(of).collect() };
    result.set_item("packets", column(|one| one.packets.into()))?;
    result.set_item("payload_bytes", column(|one| one.payload_bytes))?;
    result.set_item("retransmitted", column(|one| one.retransmitted.into()))?;
    Ok(result)
}

fn connection_row<'py>(py: Python<'py>, one: &Connection) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("id", one.id)?;
    row.set_item("service", one.service.name())?;
    row.set_item("net", one.net.name())?;
    row.set_item("paired_by", one.paired_by.map(roce::flow::PairedBy::name))?;
    row.set_item("certainty", one.certainty())?;
    for (name, end) in [("a", one.a), ("b", one.b)] {
        let side = PyDict::new(py);
        side.set_item("address", address(end.address).to_string())?;
        side.set_item("qpn", end.qpn)?;
        row.set_item(name, side)?;
    }
    row.set_item("first_ns", one.first_ns)?;
    row.set_item("last_ns", one.last_ns)?;
    row.set_item("evicted", one.evicted)?;
    let directions = PyList::empty(py);
    for (from, stats) in ["a", "b"].into_iter().zip(&one.directions) {
        if let Some(stats) = stats {
            directions.append(direction_row(py, from, stats)?)?;
        }
    }
    row.set_item("directions", directions)?;
    Ok(row)
}

fn direction_row<'py>(py: Python<'py>, from: &str, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("from", from)?;
    let counters = [
        ("packets", stats.packets),
        ("wire_bytes", stats.wire_bytes),
        ("payload_bytes", stats.payload_bytes),
        ("goodput_bytes", stats.goodput_bytes),
        ("messages", stats.messages),
        ("incomplete_messages", stats.incomplete),
        ("requests", stats.requests),
        ("retransmitted", stats.retransmitted),
        ("retransmitted_requests", stats.retransmitted_requests),
        ("duplicates", stats.duplicates),
        ("gaps", stats.gaps),
        ("missing", stats.missing),
        ("out_of_order", stats.out_of_order),
        ("acks", stats.acks),
        ("acked_messages", stats.acked_messages),
        ("rnr", stats.rnr),
        ("cnp", stats.cnp),
        ("max_outstanding", u64::from(stats.max_outstanding)),
        ("path_mtu", u64::from(stats.pmtu)),
        ("dscp", u64::from(stats.dscp)),
    ];
    for (name, value) in counters {
        row.set_item(name, value)?;
    }
    let causes = PyDict::new(py);
    let by_cause = &stats.retransmissions;
    for (name, value) in [
        ("after_nak", by_cause.after_nak),
        ("after_rnr", by_cause.after_rnr),
        ("after_response_gap", by_cause.after_response_gap),
        ("after_timeout", by_cause.after_timeout),
        ("spurious", by_cause.spurious),
        ("ambiguous", by_cause.ambiguous),
    ] {
        causes.set_item(name, value)?;
    }
    row.set_item("retransmissions", causes)?;
    let naks = PyDict::new(py);
    for (name, &count) in NAK_NAMES.iter().zip(&stats.naks) {
        if count > 0 {
            naks.set_item(name, count)?;
        }
    }
    row.set_item("naks", naks)?;
    row.set_item("rnr_timer_ns", stats.rnr_timer_ns.map(|(min, max)| [min, max]))?;
    row.set_item("credit_codes", stats.credits.map(|(min, max)| [u32::from(min), u32::from(max)]))?;
    row.set_item("ce", stats.ecn[3])?;
    row.set_item("cnp_min_gap_ns", stats.cnp_min_gap_ns)?;
    let latency = PyDict::new(py);
    let histogram = &stats.latency;
    let some = |value: u64| (histogram.count() > 0).then_some(value);
    latency.set_item("count", histogram.count())?;
    latency.set_item("mean", some(histogram.mean()))?;
    latency.set_item("p50", some(histogram.quantile(0.5)))?;
    latency.set_item("p99", some(histogram.quantile(0.99)))?;
    latency.set_item("max", some(histogram.max()))?;
    latency.set_item("buckets", histogram.buckets().collect::<Vec<_>>())?;
    row.set_item("latency_ns", latency)?;
    row.set_item("series", series(py, &stats.series)?)?;
    Ok(row)
}

fn finding_row<'py>(py: Python<'py>, finding: &Finding) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("rule", finding.rule.name())?;
    row.set_item("severity", finding.severity.name())?;
    row.set_item("ambiguous", finding.ambiguous)?;
    row.set_item("file", finding.at.file)?;
    row.set_item("packet", finding.at.packet)?;
    row.set_item("time_ns", finding.at.time_ns)?;
    row.set_item("connection", finding.connection)?;
    row.set_item("detail", &finding.detail)?;
    Ok(row)
}
