// SPDX-License-Identifier: GPL-2.0-or-later
//! The result of an analysis as Python dictionaries (docs/formats/analysis.md).

use engine::{Analyzer, Changed, Common, ETHERNET_EXTRA, mac_text};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use roce::finding::Finding;
use roce::flow::{Connection, Episode, Stats, Unlisted};
use roce::icrc::Absence;
use roce::{NAK_NAMES, Net, Series, address, opcode};

use crate::cm_result::exchange_rows;

/// Layers that are listed; hostile captures have thousands.
const MAX_LAYERS: usize = 64;

/// How much of each connection is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All that `--json` has.
    Full,
    /// What its verdict is judged by: a small part, which thousands of connections make much cheaper.
    Verdict,
}

pub(crate) fn result_dict<'py>(
    py: Python<'py>,
    analyzer: &Analyzer,
    connections: &[Connection],
    detail: Detail,
) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("input", input(py, analyzer)?)?;
    result.set_item("evidence", evidence(py, analyzer)?)?;
    result.set_item("roce", roce(py, analyzer)?)?;
    result.set_item("icrc", icrc(py, analyzer)?)?;
    result.set_item("opcodes", opcode_counts(py, analyzer)?)?;
    result.set_item("congestion", congestion(py, analyzer)?)?;
    result.set_item("overhead", overhead(py, analyzer)?)?;
    let over_time = series(py, &analyzer.series)?;
    // only connections know it
    over_time.del_item("retransmitted")?;
    result.set_item("series", over_time)?;
    let rows = PyList::empty(py);
    for connection in connections {
        rows.append(match detail {
            Detail::Full => connection_row(py, connection)?,
            Detail::Verdict => judged_row(py, connection)?,
        })?;
    }
    result.set_item("connections", rows)?;
    let tracker = &analyzer.tracker;
    result.set_item("connections_unreported", tracker.unlisted.count)?;
    if tracker.unlisted.count > 0 {
        result.set_item("unlisted", unlisted(py, &tracker.unlisted)?)?;
    }
    result.set_item("connections_evicted", tracker.evicted)?;
    let (exchanges, unreported) = tracker.exchanges();
    result.set_item("cm", exchange_rows(py, exchanges)?)?;
    result.set_item("cm_unreported", unreported)?;
    let rows = PyList::empty(py);
    for finding in &tracker.findings.list {
        rows.append(finding_row(py, finding)?)?;
    }
    result.set_item("findings", rows)?;
    result.set_item("findings_total", tracker.findings.total())?;
    result.set_item("findings_ambiguous", tracker.findings.ambiguous())?;
    let counts = PyList::empty(py);
    for (rule, severity, count) in tracker.findings.counts() {
        let row = PyDict::new(py);
        row.set_item("rule", rule.name())?;
        row.set_item("severity", severity.name())?;
        row.set_item("count", count)?;
        counts.append(row)?;
    }
    result.set_item("finding_counts", counts)?;
    Ok(result)
}

/// What a verdict needs of the connections beyond the limit.
fn unlisted<'py>(py: Python<'py>, unlisted: &Unlisted) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    let rows = PyList::empty(py);
    for connection in unlisted.kept() {
        rows.append(judged_row(py, connection)?)?;
    }
    result.set_item("connections", rows)?;
    let (count, lost_ns) = unlisted.dropped;
    result.set_item("dropped", count)?;
    result.set_item("dropped_lost_ns", lost_ns)?;
    let sums = &unlisted.sums;
    let others = PyDict::new(py);
    others.set_item("connections", sums.connections)?;
    others.set_item("span_ns", sums.span_ns)?;
    others.set_item("lost_ns", sums.lost_ns)?;
    others.set_item("idle_ns", sums.idle_ns)?;
    others.set_item("waiting_ns", sums.waiting_ns)?;
    others.set_item("messages", sums.messages)?;
    others.set_item("goodput_bytes", sums.goodput_bytes)?;
    others.set_item("most_messages", sums.most_messages)?;
    others.set_item("fastest_ns", (sums.fastest_ns < u64::MAX).then_some(sums.fastest_ns))?;
    others.set_item("medians_ns", sums.medians.buckets().collect::<Vec<_>>())?;
    let idle = sums.longest_idle.as_ref().map(|one| episode(py, one)).transpose()?;
    others.set_item("longest_idle", idle)?;
    result.set_item("others", others)?;
    Ok(result)
}

fn input<'py>(py: Python<'py>, analyzer: &Analyzer) -> PyResult<Bound<'py, PyDict>> {
    let totals = &analyzer.totals;
    let input = PyDict::new(py);
    input.set_item("packets", totals.packets)?;
    input.set_item("bytes", totals.bytes)?;
    input.set_item("truncated", totals.truncated)?;
    input.set_item("cut_headers", totals.cut)?;
    input.set_item("other", totals.other - totals.joined_fragments)?;
    input.set_item("fragments", totals.fragments)?;
    input.set_item("roce_fragments", totals.roce_fragments)?;
    if totals.roce_fragments > 0 {
        input.set_item("reassembled", totals.reassembled)?;
    }
    input.set_item("not_looked_into", not_looked_into(py, analyzer)?)?;
    input.set_item("first_ns", analyzer.times.map(|times| times.0))?;
    input.set_item("last_ns", analyzer.times.map(|times| times.1))?;
    input.set_item("times_backwards", analyzer.backwards)?;
    let errors = PyList::empty(py);
    for (file, error) in analyzer.errors() {
        let row = PyDict::new(py);
        row.set_item("file", file)?;
        row.set_item("error", error.to_string())?;
        errors.append(row)?;
    }
    input.set_item("errors", errors)?;
    Ok(input)
}

/// Layers behind which there may be RoCE, those of most packets first.
fn not_looked_into<'py>(py: Python<'py>, analyzer: &Analyzer) -> PyResult<Bound<'py, PyList>> {
    let mut layers: Vec<_> = analyzer.totals.unread.iter().collect();
    layers.sort_by_key(|(layer, counts)| (std::cmp::Reverse(counts.0), **layer));
    let rows = PyList::empty(py);
    for (layer, (packets, with_roce)) in layers.into_iter().take(MAX_LAYERS) {
        let row = PyDict::new(py);
        row.set_item("kind", layer.kind())?;
        row.set_item("number", layer.number())?;
        row.set_item("name", layer.name())?;
        row.set_item("packets", packets)?;
        row.set_item("with_roce", with_roce)?;
        rows.append(row)?;
    }
    Ok(rows)
}

/// What the packets show about the capture as a whole.
pub(crate) fn evidence<'py>(py: Python<'py>, analyzer: &Analyzer) -> PyResult<Bound<'py, PyDict>> {
    let evidence = &analyzer.tracker.evidence;
    let result = PyDict::new(py);
    let (moved, steps) = analyzer.disorder();
    result.set_item("moved", moved)?;
    result.set_item("clock_steps", steps)?;
    result.set_item("looks", evidence.looks())?;
    let (of_interfaces, of_mirrors) = analyzer.copies();
    result.set_item("copies_of_interfaces", of_interfaces)?;
    result.set_item("copies", of_mirrors)?;
    result.set_item("without_icrc", analyzer.absence().map(Absence::name))?;
    result.set_item("snap_needed", analyzer.totals.snap_needed)?;
    result.set_item("sampled", evidence.sampled())?;
    result.set_item("fragmented", evidence.fragmented)?;
    result.set_item("of_other_header", analyzer.totals.of_other_header)?;
    result.set_item("unknown_reads", evidence.unknown_reads)?;
    result.set_item("midway", evidence.midway)?;
    result.set_item("icrcs_all_wrong", icrcs_all_wrong(py, analyzer)?)?;
    let clocks = PyList::empty(py);
    for clock in &evidence.clocks {
        let row = PyDict::new(py);
        row.set_item("behind", clock.behind)?;
        row.set_item("than", clock.than)?;
        row.set_item("count", clock.count)?;
        row.set_item("least_ns", clock.least_ns)?;
        clocks.append(row)?;
    }
    result.set_item("clocks", clocks)?;
    let withdrawn = analyzer.tracker.withdrawn.iter();
    let rows = withdrawn
        .map(|one| (one.connection, one.at.file, one.at.packet, one.at.time_ns, one.bytes));
    result.set_item("withdrawn", rows.collect::<Vec<_>>())?;
    result.set_item("spans_ns", analyzer.spans_ns().collect::<Vec<_>>())?;
    Ok(result)
}

/// How all ICRCs of the capture are wrong, or nothing.
fn icrcs_all_wrong<'py>(
    py: Python<'py>,
    analyzer: &Analyzer,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let right = analyzer.totals.icrc[1];
    let Some(common) = analyzer.wrong_icrcs.all_wrong(right) else { return Ok(None) };
    let row = PyDict::new(py);
    let constant = match common {
        Common::Constant(found) => Some(format!("0x{:08x}", found.swap_bytes())),
        Common::Seed | Common::Nothing => None,
    };
    row.set_item("constant", constant)?;
    row.set_item("other_seed", common == Common::Seed)?;
    let changed = PyList::empty(py);
    for one in analyzer.wrong_icrcs.changed() {
        let field = PyDict::new(py);
        field.set_item("field", one.field.name())?;
        field.set_item("was", was(&one))?;
        field.set_item("from", address(one.src).to_string())?;
        field.set_item("to", address(one.dst).to_string())?;
        changed.append(field)?;
    }
    row.set_item("changed", changed)?;
    row.set_item("ports", analyzer.totals.unproven_ports.keys().collect::<Vec<_>>())?;
    Ok(Some(row))
}

/// The value that a field had: an address, or a number.
fn was(one: &Changed) -> String {
    let [a, b, c, d] = one.was.to_be_bytes();
    if one.field.is_address() { format!("{a}.{b}.{c}.{d}") } else { one.was.to_string() }
}

fn roce<'py>(py: Python<'py>, analyzer: &Analyzer) -> PyResult<Bound<'py, PyDict>> {
    let totals = &analyzer.totals;
    let roce = PyDict::new(py);
    roce.set_item("packets", totals.roce.iter().sum::<u64>())?;
    for net in Net::ALL {
        roce.set_item(net.name(), totals.roce[net as usize])?;
    }
    roce.set_item("vlan", totals.vlan)?;
    roce.set_item("tunneled", totals.tunneled)?;
    let ports = PyDict::new(py);
    for (port, count) in &totals.other_ports {
        ports.set_item(port.to_string(), count)?;
    }
    roce.set_item("other_ports", ports)?;
    Ok(roce)
}

fn icrc<'py>(py: Python<'py>, analyzer: &Analyzer) -> PyResult<Bound<'py, PyDict>> {
    let [unchecked, ok, bad] = analyzer.totals.icrc;
    let icrc = PyDict::new(py);
    icrc.set_item("ok", ok)?;
    icrc.set_item("bad", bad)?;
    icrc.set_item("unchecked", unchecked)?;
    let diagnoses = PyDict::new(py);
    for (name, count) in &analyzer.wrong_icrcs.by_diagnosis {
        diagnoses.set_item(name, count)?;
    }
    icrc.set_item("diagnoses", diagnoses)?;
    let rows = PyList::empty(py);
    for one in &analyzer.bad {
        let row = PyDict::new(py);
        row.set_item("file", one.at.file)?;
        row.set_item("packet", one.at.packet)?;
        // in the order of the bytes on the wire, as Wireshark prints them
        row.set_item("expected", format!("0x{:08x}", one.expected.swap_bytes()))?;
        row.set_item("found", format!("0x{:08x}", one.found.swap_bytes()))?;
        row.set_item("diagnosis", one.diagnosis.name())?;
        rows.append(row)?;
    }
    icrc.set_item("bad_packets", rows)?;
    Ok(icrc)
}

fn opcode_counts<'py>(py: Python<'py>, analyzer: &Analyzer) -> PyResult<Bound<'py, PyDict>> {
    let totals = &analyzer.totals;
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

fn congestion<'py>(py: Python<'py>, analyzer: &Analyzer) -> PyResult<Bound<'py, PyDict>> {
    let totals = &analyzer.totals;
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
    let rows = PyList::empty(py);
    for (source, class, pause) in analyzer.pauses.iter() {
        let row = PyDict::new(py);
        row.set_item("source", mac_text(source))?;
        row.set_item("class", class)?;
        row.set_item("file", pause.first.file)?;
        row.set_item("packet", pause.first.packet)?;
        row.set_item("first_ns", pause.first.time_ns)?;
        row.set_item("last_ns", pause.last_ns)?;
        row.set_item("xoff", pause.xoff)?;
        row.set_item("xon", pause.xon)?;
        row.set_item("quanta", pause.quanta)?;
        row.set_item("paused_at_most_ns", pause.paused_at_most_ns)?;
        rows.append(row)?;
    }
    congestion.set_item("pauses", rows)?;
    Ok(congestion)
}

fn overhead<'py>(py: Python<'py>, analyzer: &Analyzer) -> PyResult<Bound<'py, PyDict>> {
    let totals = &analyzer.totals;
    let overhead = PyDict::new(py);
    overhead.set_item("wire_bytes", totals.wire_bytes)?;
    overhead.set_item("payload_bytes", totals.payload_bytes)?;
    let headers = PyDict::new(py);
    for (key, bytes) in totals.by_header() {
        headers.set_item(key, bytes)?;
    }
    overhead.set_item("by_header", headers)?;
    let packets = totals.roce_frames() - totals.roce[Net::Infiniband as usize];
    overhead.set_item("preamble_fcs_gap_bytes", packets * ETHERNET_EXTRA)?;
    let rows = PyList::empty(py);
    for (net, up_to, class) in analyzer.tracker.efficiency.rows() {
        let row = PyDict::new(py);
        row.set_item("net", net.name())?;
        row.set_item("message_bytes_up_to", up_to)?;
        row.set_item("messages", class.messages)?;
        row.set_item("packets", class.packets)?;
        row.set_item("frames", class.frames)?;
        row.set_item("payload_bytes", class.payload_bytes)?;
        row.set_item("wire_bytes", class.wire_bytes)?;
        row.set_item("efficiency", class.payload_bytes as f64 / class.wire_bytes.max(1) as f64)?;
        rows.append(row)?;
    }
    overhead.set_item("by_message_size", rows)?;
    Ok(overhead)
}

fn series<'py>(py: Python<'py>, series: &Series) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    let intervals = series.intervals();
    let some = !intervals.is_empty();
    result.set_item(intern!(py, "start_ns"), some.then_some(series.start_ns))?;
    result.set_item(intern!(py, "step_ns"), series.step_ns)?;
    let column =
        |of: fn(&roce::Interval) -> u64| -> Vec<u64> { intervals.iter().map(of).collect() };
    result.set_item(intern!(py, "packets"), column(|one| one.packets.into()))?;
    result.set_item(intern!(py, "payload_bytes"), column(|one| one.payload_bytes))?;
    result.set_item(intern!(py, "retransmitted"), column(|one| one.retransmitted.into()))?;
    Ok(result)
}

fn connection_row<'py>(py: Python<'py>, one: &Connection) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item(intern!(py, "id"), one.id)?;
    row.set_item(intern!(py, "service"), PyString::intern(py, one.service.name()))?;
    row.set_item(intern!(py, "net"), PyString::intern(py, one.net.name()))?;
    row.set_item(intern!(py, "paired_by"), one.paired_by.map(roce::flow::PairedBy::name))?;
    row.set_item(intern!(py, "certainty"), PyString::intern(py, one.certainty()))?;
    for (name, end) in [(intern!(py, "a"), one.a), (intern!(py, "b"), one.b)] {
        let side = PyDict::new(py);
        side.set_item(intern!(py, "address"), address(end.address).to_string())?;
        side.set_item(intern!(py, "qpn"), end.qpn)?;
        row.set_item(name, side)?;
    }
    let vlans = one.segment.vlans;
    let tags = [vlans >> 12, vlans & 0xfff];
    row.set_item(
        intern!(py, "vlans"),
        tags.into_iter().filter(|&tag| tag > 0).collect::<Vec<_>>(),
    )?;
    row.set_item(intern!(py, "tunnel"), tunnel(py, one)?)?;
    row.set_item(intern!(py, "lids"), lids(one))?;
    row.set_item(intern!(py, "first_ns"), one.first_ns)?;
    row.set_item(intern!(py, "last_ns"), one.last_ns)?;
    row.set_item(intern!(py, "evicted"), one.evicted)?;
    let directions = PyList::empty(py);
    for (from, stats) in [intern!(py, "a"), intern!(py, "b")].into_iter().zip(&one.directions) {
        if let Some(stats) = stats {
            directions.append(direction_row(py, from, stats)?)?;
        }
    }
    row.set_item(intern!(py, "directions"), directions)?;
    Ok(row)
}

/// What a verdict is judged by, with the names that [`connection_row`] gives it.
fn judged_row<'py>(py: Python<'py>, one: &Connection) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item(intern!(py, "id"), one.id)?;
    row.set_item(intern!(py, "net"), PyString::intern(py, one.net.name()))?;
    for (name, end) in [(intern!(py, "a"), one.a), (intern!(py, "b"), one.b)] {
        let side = PyDict::new(py);
        side.set_item(intern!(py, "address"), address(end.address).to_string())?;
        side.set_item(intern!(py, "qpn"), end.qpn)?;
        row.set_item(name, side)?;
    }
    row.set_item(intern!(py, "first_ns"), one.first_ns)?;
    row.set_item(intern!(py, "last_ns"), one.last_ns)?;
    let directions = PyList::empty(py);
    let congested = one.directions.iter().flatten().any(|stats| stats.cnp > 0);
    for (from, stats) in [intern!(py, "a"), intern!(py, "b")].into_iter().zip(&one.directions) {
        let Some(stats) = stats else { continue };
        let direction = judged_direction(py, from, stats)?;
        if congested {
            direction.set_item(intern!(py, "series"), series(py, &stats.series)?)?;
        }
        directions.append(direction)?;
    }
    row.set_item(intern!(py, "directions"), directions)?;
    Ok(row)
}

fn judged_direction<'py>(
    py: Python<'py>,
    from: &Bound<'py, PyString>,
    stats: &Stats,
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item(intern!(py, "from"), from)?;
    for (name, value) in [
        (intern!(py, "packets"), stats.packets),
        (intern!(py, "wire_bytes"), stats.wire_bytes),
        (intern!(py, "payload_bytes"), stats.payload_bytes),
        (intern!(py, "goodput_bytes"), stats.goodput_bytes),
        (intern!(py, "messages"), stats.messages),
        (intern!(py, "missed_by_capture"), stats.missed),
        (intern!(py, "out_of_order"), stats.out_of_order),
        (intern!(py, "acks"), stats.acks),
        (intern!(py, "cnp"), stats.cnp),
        (intern!(py, "ce"), stats.ecn[3]),
        (intern!(py, "path_mtu"), u64::from(stats.pmtu)),
    ] {
        row.set_item(name, value)?;
    }
    row.set_item(intern!(py, "naks"), naks(py, stats)?)?;
    row.set_item(intern!(py, "rnr_timer_ns"), rnr_timer(stats))?;
    row.set_item(intern!(py, "latency_ns"), latency(py, stats)?)?;
    row.set_item(intern!(py, "pace"), pace(py, stats)?)?;
    row.set_item(intern!(py, "costs"), costs(py, stats)?)?;
    Ok(row)
}

/// The LIDs of native InfiniBand whose addresses are GIDs, from end `a` to end `b`.
fn lids(one: &Connection) -> Option<[String; 2]> {
    let (from, to) = one.outer.filter(|_| one.net == Net::Infiniband)?;
    Some([address(from).to_string(), address(to).to_string()])
}

/// The tunnel of a connection, or nothing.
fn tunnel<'py>(py: Python<'py>, one: &Connection) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(name) = one.segment.tunnel.name() else { return Ok(None) };
    let row = PyDict::new(py);
    row.set_item(intern!(py, "kind"), name)?;
    row.set_item(intern!(py, "id"), one.segment.id)?;
    row.set_item(intern!(py, "from"), one.outer.map(|ends| address(ends.0).to_string()))?;
    row.set_item(intern!(py, "to"), one.outer.map(|ends| address(ends.1).to_string()))?;
    Ok(Some(row))
}

fn direction_row<'py>(
    py: Python<'py>,
    from: &Bound<'py, PyString>,
    stats: &Stats,
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item(intern!(py, "from"), from)?;
    let counters = [
        (intern!(py, "packets"), stats.packets),
        (intern!(py, "wire_bytes"), stats.wire_bytes),
        (intern!(py, "payload_bytes"), stats.payload_bytes),
        (intern!(py, "goodput_bytes"), stats.goodput_bytes),
        (intern!(py, "messages"), stats.messages),
        (intern!(py, "incomplete_messages"), stats.incomplete),
        (intern!(py, "requests"), stats.requests),
        (intern!(py, "retransmitted"), stats.retransmitted),
        (intern!(py, "retransmitted_requests"), stats.retransmitted_requests),
        (intern!(py, "duplicates"), stats.duplicates),
        (intern!(py, "gaps"), stats.gaps),
        (intern!(py, "missing"), stats.missing),
        (intern!(py, "missed_by_capture"), stats.missed),
        (intern!(py, "out_of_order"), stats.out_of_order),
        (intern!(py, "reorder_depth"), stats.reorder_depth.into()),
        (intern!(py, "acks"), stats.acks),
        (intern!(py, "acked_messages"), stats.acked_messages),
        (intern!(py, "rnr"), stats.rnr),
        (intern!(py, "cnp"), stats.cnp),
        (intern!(py, "max_outstanding"), u64::from(stats.max_outstanding)),
        (intern!(py, "max_reads"), u64::from(stats.max_reads)),
        (intern!(py, "path_mtu"), u64::from(stats.pmtu)),
        (intern!(py, "dscp"), u64::from(stats.dscp)),
    ];
    for (name, value) in counters {
        row.set_item(name, value)?;
    }
    let causes = PyDict::new(py);
    let by_cause = &stats.retransmissions;
    for (name, value) in [
        (intern!(py, "after_nak"), by_cause.after_nak),
        (intern!(py, "after_rnr"), by_cause.after_rnr),
        (intern!(py, "after_response_gap"), by_cause.after_response_gap),
        (intern!(py, "after_timeout"), by_cause.after_timeout),
        (intern!(py, "spurious"), by_cause.spurious),
        (intern!(py, "ambiguous"), by_cause.ambiguous),
    ] {
        causes.set_item(name, value)?;
    }
    row.set_item(intern!(py, "retransmissions"), causes)?;
    row.set_item(intern!(py, "naks"), naks(py, stats)?)?;
    row.set_item(intern!(py, "rnr_timer_ns"), rnr_timer(stats))?;
    row.set_item(
        intern!(py, "credit_codes"),
        stats.credits.map(|(min, max)| [u32::from(min), u32::from(max)]),
    )?;
    row.set_item(intern!(py, "ce"), stats.ecn[3])?;
    row.set_item(intern!(py, "cnp_min_gap_ns"), stats.cnp_min_gap_ns)?;
    let latency = latency(py, stats)?;
    latency.set_item(intern!(py, "buckets"), stats.latency.buckets().collect::<Vec<_>>())?;
    row.set_item(intern!(py, "latency_ns"), latency)?;
    row.set_item(intern!(py, "series"), series(py, &stats.series)?)?;
    row.set_item(intern!(py, "pace"), pace(py, stats)?)?;
    row.set_item(intern!(py, "costs"), costs(py, stats)?)?;
    Ok(row)
}

fn naks<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let naks = PyDict::new(py);
    for (name, &count) in NAK_NAMES.iter().zip(&stats.naks) {
        if count > 0 {
            naks.set_item(name, count)?;
        }
    }
    Ok(naks)
}

fn rnr_timer(stats: &Stats) -> Option<[u64; 2]> {
    stats.rnr_timer_ns.map(|(min, max)| [min, max])
}

/// The times from requests to their responses, without the buckets.
fn latency<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let histogram = &stats.latency;
    let some = |value: u64| (histogram.count() > 0).then_some(value);
    let latency = PyDict::new(py);
    latency.set_item(intern!(py, "count"), histogram.count())?;
    latency.set_item(intern!(py, "mean"), some(histogram.mean()))?;
    latency.set_item(intern!(py, "p50"), some(histogram.quantile(0.5)))?;
    latency.set_item(intern!(py, "p99"), some(histogram.quantile(0.99)))?;
    latency.set_item(intern!(py, "max"), some(histogram.max()))?;
    Ok(latency)
}

/// How the time of a direction's requests passed; nothing if none was answered.
fn pace<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Option<Bound<'py, PyDict>>> {
    let pace = &stats.pace;
    if pace.most_messages == 0 {
        return Ok(None);
    }
    let row = PyDict::new(py);
    row.set_item(intern!(py, "idle_ns"), pace.idle_ns)?;
    row.set_item(intern!(py, "waiting_ns"), pace.waiting_ns)?;
    row.set_item(
        intern!(py, "fastest_ns"),
        (pace.fastest_ns < u64::MAX).then_some(pace.fastest_ns),
    )?;
    row.set_item(intern!(py, "most_messages"), pace.most_messages)?;
    let delayed = stats.costs.as_ref().map(|costs| &costs.delayed);
    row.set_item(intern!(py, "delayed"), delayed.map_or(0, roce::Histogram::count))?;
    let again = delayed.filter(|delayed| delayed.count() > 0);
    let all = again.map(|delayed| stats.latency.clone().merged(delayed));
    row.set_item(intern!(py, "p99_all_ns"), all.map(|all| all.quantile(0.99)))?;
    let idle = pace.longest_idle.as_ref().map(|one| episode(py, one)).transpose()?;
    row.set_item(intern!(py, "longest_idle"), idle)?;
    Ok(Some(row))
}

/// What delayed a direction's requests.
fn costs<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyList>> {
    let rows = PyList::empty(py);
    for cost in stats.costs.iter().flat_map(|costs| &costs.rows) {
        let row = PyDict::new(py);
        row.set_item(intern!(py, "trouble"), PyString::intern(py, cost.trouble.name()))?;
        row.set_item(intern!(py, "repair"), cost.repair.name())?;
        row.set_item(intern!(py, "ns"), cost.ns)?;
        row.set_item(intern!(py, "least_ns"), cost.least_ns)?;
        row.set_item(intern!(py, "count"), cost.count)?;
        row.set_item(intern!(py, "unsure"), cost.unsure)?;
        row.set_item(intern!(py, "messages"), cost.messages)?;
        let episodes = PyList::empty(py);
        for one in &cost.episodes {
            episodes.append(episode(py, one)?)?;
        }
        row.set_item(intern!(py, "episodes"), episodes)?;
        rows.append(row)?;
    }
    Ok(rows)
}

fn episode<'py>(py: Python<'py>, one: &Episode) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item(intern!(py, "file"), one.file)?;
    row.set_item(intern!(py, "packet"), one.packet)?;
    row.set_item(intern!(py, "until"), one.until)?;
    row.set_item(intern!(py, "ns"), one.ns)?;
    Ok(row)
}

fn finding_row<'py>(py: Python<'py>, finding: &Finding) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item(intern!(py, "rule"), PyString::intern(py, finding.rule.name()))?;
    row.set_item(intern!(py, "severity"), PyString::intern(py, finding.severity.name()))?;
    row.set_item(intern!(py, "ambiguous"), finding.ambiguous)?;
    row.set_item(intern!(py, "file"), finding.at.file)?;
    row.set_item(intern!(py, "packet"), finding.at.packet)?;
    row.set_item(intern!(py, "count"), finding.count)?;
    row.set_item(intern!(py, "time_ns"), finding.at.time_ns)?;
    row.set_item(intern!(py, "connection"), finding.connection)?;
    row.set_item(intern!(py, "detail"), &finding.detail)?;
    Ok(row)
}
