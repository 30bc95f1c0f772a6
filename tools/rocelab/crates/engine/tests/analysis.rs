// SPDX-License-Identifier: GPL-2.0-or-later
//! The pipeline gives the same results with any number of threads, and what its options ask for.

mod support;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array as _, RecordBatch};
use engine::read::Input;
use engine::{Analyzer, Filter, Network, Options};
use rc_simulator::frame::{Host, Transport, ethernet, opcode};
use rc_simulator::{Plan, simulate};
use roce::finding::Rule;
use roce::flow::Connection;
use roce::{Net, opcode as opcodes};
use support::{
    A, B, Captured, Endian, START_NS, Unit, each_microsecond, input, pcap, pcapng, write, writes,
};

fn options() -> Options {
    Options { packets: true, ..Options::default() }
}

fn filter(set: impl FnOnce(&mut Filter)) -> Filter {
    let mut filter = Filter::default();
    set(&mut filter);
    filter
}

struct Analysis {
    analyzer: Analyzer,
    connections: Vec<Connection>,
    packets: RecordBatch,
}

impl Analysis {
    fn of(files: Vec<Input>, options: Options) -> Self {
        let mut analyzer = Analyzer::new(files, options);
        while analyzer.step() {}
        let connections = analyzer.finish();
        let packets = analyzer.packets.take().unwrap();
        Self { analyzer, connections, packets }
    }

    fn of_frames(frames: &[Captured], options: Options) -> Self {
        Self::of(vec![input(pcap(frames, Endian::Little, Unit::Nano))], options)
    }

    fn rules(&self) -> Vec<Rule> {
        self.analyzer.tracker.findings.list.iter().map(|finding| finding.rule).collect()
    }

    /// A column of numbers, as text.
    fn column(&self, name: &str) -> Vec<String> {
        let column = self.packets.column_by_name(name).unwrap();
        let texts = arrow_array::cast::as_string_array;
        (0..column.len())
            .map(|row| match column.data_type().to_string().as_str() {
                "UInt16" => column.as_primitive::<UInt16Type>().value(row).to_string(),
                "UInt32" => column.as_primitive::<UInt32Type>().value(row).to_string(),
                "UInt64" => column.as_primitive::<UInt64Type>().value(row).to_string(),
                _ => texts(column).value(row).to_owned(),
            })
            .collect()
    }
}

/// A lossy connection of several MB, so that every thread gets batches.
fn lossy() -> Vec<Captured> {
    let plan = Plan { messages: 900, lost: [5, 5, 5, 5], rnr: 20, ..Plan::default() };
    let trace = simulate(11, plan);
    assert!(trace.complete);
    let captured = |(time_ns, frame)| Captured { time_ns, frame, comment: None };
    trace.frames.into_iter().map(captured).collect()
}

#[test]
fn threads_change_nothing() {
    let files = || {
        let (early, late): (Vec<_>, Vec<_>) =
            (0..).zip(lossy()).partition::<Vec<_>, _>(|(at, _)| at % 3 == 0);
        [early, late].map(|part: Vec<(usize, Captured)>| {
            let frames: Vec<Captured> = part.into_iter().map(|(_, captured)| captured).collect();
            input(pcapng(&frames, Endian::Big))
        })
    };
    for packets in [true, false] {
        let analyse = |threads| {
            let Analysis { analyzer, connections, packets } =
                Analysis::of(files().into(), Options { threads, packets, ..options() });
            let findings = format!("{:?}", analyzer.tracker.findings.list);
            let sums = format!("{:?} {:?} {:?}", analyzer.totals, analyzer.series, analyzer.times);
            (sums, findings, format!("{connections:?}"), packets)
        };
        let alone = analyse(1);
        assert!(alone.1.contains("Loss"), "the wire loses packets");
        for threads in [2, 5] {
            let together = analyse(threads);
            assert!(alone == together, "{threads} threads, rows of packets: {packets}");
        }
    }
}

/// More directions than a batch remembers the headers of, and each in many batches.
#[test]
fn headers_of_earlier_blocks_are_forgotten() {
    const DIRECTIONS: u32 = 1500;
    const EACH: u32 = 6;
    let write = |psn, qp| {
        let packet = Transport::new(opcode::WRITE_ONLY, 100 + qp, psn);
        ethernet(A, B, 0, &packet.reth(0, 1, 64).payload(64))
    };
    // the first directions send all the time, so that some headers are known and others forgotten
    let all = (0..EACH).flat_map(|psn| (0..DIRECTIONS).map(move |qp| (psn, qp)));
    let few = (EACH..EACH * 100).flat_map(|psn| (0..20).map(move |qp| (psn, qp)));
    let rest = (EACH..EACH * 2).flat_map(|psn| (20..DIRECTIONS).map(move |qp| (psn, qp)));
    let frames = each_microsecond(all.chain(few).chain(rest).map(|(psn, qp)| write(psn, qp)));
    for threads in [1, 3] {
        let options = Options { threads, packets: false, ..options() };
        let analysis = Analysis::of_frames(&frames, options);
        assert_eq!(analysis.rules(), []);
        let Analysis { analyzer, connections, .. } = analysis;
        assert_eq!(analyzer.totals.packets, frames.len() as u64);
        let of_opcode =
            analyzer.totals.opcodes[opcodes::lookup(opcode::WRITE_ONLY).unwrap().index()];
        assert_eq!(of_opcode, frames.len() as u64);
        assert_eq!(connections.len(), DIRECTIONS as usize);
        for (at, connection) in (0..).zip(&connections) {
            let stats = connection.directions[0].as_ref().unwrap();
            let sent = if at < 20 { EACH * 100 } else { EACH * 2 };
            assert_eq!((stats.messages, stats.packets), (sent.into(), sent.into()), "{at}");
        }
    }
}

#[test]
fn a_snapshot_is_the_result_so_far() {
    let frames = lossy();
    let told = |analyzer: &Analyzer, connections: &[Connection]| {
        let findings = format!("{:?}", analyzer.tracker.findings.list);
        (format!("{:?}", analyzer.totals), findings, format!("{connections:?}"))
    };
    let whole = Analysis::of_frames(&frames, options());
    let whole = told(&whole.analyzer, &whole.connections);
    let mut analyzer =
        Analyzer::new(vec![input(pcap(&frames, Endian::Little, Unit::Nano))], options());
    let mut snapshots = Vec::new();
    while analyzer.step() {
        snapshots.push((analyzer.followed as usize, analyzer.snapshot(told)));
    }
    let connections = analyzer.finish();
    assert!(told(&analyzer, &connections) == whole, "looking changes nothing");
    assert!(snapshots.len() > 2);
    for (followed, seen) in snapshots {
        let part = Analysis::of_frames(&frames[..followed], options());
        assert!(seen == told(&part.analyzer, &part.connections), "after {followed} packets");
    }
}

#[test]
fn rows_are_in_capture_order() {
    let frames = lossy();
    let numbers: Vec<String> = (1..=frames.len()).map(|number| number.to_string()).collect();
    for (threads, read_ahead) in [(4, false), (2, true), (4, true)] {
        let analysis = Analysis::of_frames(&frames, Options { threads, read_ahead, ..options() });
        assert_eq!(analysis.column("packet"), numbers);
        assert_eq!(analysis.analyzer.totals.packets, frames.len() as u64);
        assert_eq!(analysis.analyzer.spans_ns().count(), 1);
    }
}

#[test]
fn what_a_thread_reads_ahead_can_be_stopped_or_left() {
    let frames = lossy();
    let ahead = Options { threads: 2, read_ahead: true, ..options() };
    let start = || {
        let file = input(pcap(&frames, Endian::Little, Unit::Nano));
        Analyzer::new(vec![file], ahead.clone())
    };
    drop(start());
    let mut stopped = start();
    stopped.stop();
    let connections = stopped.finish();
    assert!(stopped.totals.packets <= frames.len() as u64);
    assert!(connections.len() <= 1);
    assert!(!stopped.step());
}

#[test]
fn a_row_has_the_packets_fields() {
    let analysis = Analysis::of_frames(&writes([0xff_ffff]), options());
    for (name, expected) in [
        ("src", ["10.0.0.1", "10.0.0.2"]),
        ("opcode_name", ["RC_RDMA_WRITE_ONLY", "RC_ACKNOWLEDGE"]),
        ("net", ["v2_ipv4", "v2_ipv4"]),
        ("psn", ["16777215", "16777215"]),
        ("dqpn", ["18", "17"]),
        ("payload_bytes", ["64", "0"]),
        ("connection", ["0", "0"]),
    ] {
        assert_eq!(analysis.column(name), expected, "{name}");
    }
    let reth_only = analysis.packets.column_by_name("dma_len").unwrap();
    assert_eq!((reth_only.is_null(0), reth_only.is_null(1)), (false, true));
}

/// Two connections of A: one to B, one to C.
fn two_connections() -> Vec<Captured> {
    let to_c = |psn| {
        let packet = Transport::new(opcode::SEND_ONLY, 40, psn).payload(32);
        ethernet(A, Host::new(3), psn as u16, &packet)
    };
    each_microsecond((0..10).flat_map(|psn| [write(psn), to_c(500 + psn)]))
}

fn mapped(host: u8) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, host]
}

#[test]
fn addresses_and_times_choose_what_is_analysed() {
    let of = |filter| {
        let frames = two_connections();
        Analysis::of_frames(&frames, Options { filter, threads: 2, ..options() })
    };
    let to_c = of(filter(|it| it.networks = vec![Network::new(mapped(3), 128)]));
    assert_eq!((to_c.connections.len(), to_c.analyzer.totals.other), (1, 10));
    assert_eq!(to_c.column("dqpn"), ["40"; 10]);
    for (network, packets) in [((mapped(2), 127), 20), ((mapped(0), 0), 20), ((mapped(4), 127), 0)]
    {
        let found = of(filter(|it| it.networks = vec![Network::new(network.0, network.1)]));
        assert_eq!(found.column("dqpn").len(), packets, "{network:?}");
    }
    // from the first packet, the end excluded
    let early = of(filter(|it| it.time_ns = Some((2000, 5000))));
    assert_eq!(early.column("packet"), ["3", "4", "5"]);
    assert_eq!(early.analyzer.totals.roce[Net::V2Ipv4 as usize], 3);
}

#[test]
fn queue_pairs_opcodes_and_connections_choose_what_is_listed() {
    let send = opcodes::all().iter().find(|op| op.name == "RC_SEND_ONLY").unwrap();
    for filter in [
        filter(|it| it.qpns = vec![40]),
        filter(|it| it.opcodes = vec![send.code]),
        filter(|it| it.connections = vec![1]),
    ] {
        let name = format!("{filter:?}");
        let analysis = Analysis::of_frames(&two_connections(), Options { filter, ..options() });
        assert_eq!(analysis.column("dqpn"), ["40"; 10], "{name}");
        // all packets are analysed
        assert_eq!(analysis.connections.len(), 2, "{name}");
        assert_eq!(analysis.analyzer.totals.roce.iter().sum::<u64>(), 20, "{name}");
    }
}

#[test]
fn a_wrong_icrc_is_a_finding() {
    let mut frames = writes(0..3);
    // the last WRITE, without its ACK
    frames.truncate(5);
    let last = frames[4].frame.len() - 1;
    frames[4].frame[last] ^= 1;
    let analysis = Analysis::of_frames(&frames, options());
    assert_eq!(analysis.rules(), [Rule::IcrcBad]);
    assert_eq!(analysis.analyzer.totals.icrc, [0, 4, 1]);
    assert_eq!(analysis.analyzer.bad[0].at.packet, 5);
    let unchecked = Analysis::of_frames(&frames, Options { icrc: false, ..options() });
    assert_eq!(unchecked.analyzer.totals.icrc, [5, 0, 0]);
    assert!(unchecked.rules().is_empty(), "{:?}", unchecked.rules());
}

#[test]
fn roce_on_another_udp_port() {
    let mut frames = writes(0..4);
    for captured in &mut frames {
        captured.frame[36..38].copy_from_slice(&4792_u16.to_be_bytes());
    }
    let analyse = |ports| {
        let analysis = Analysis::of_frames(&frames, Options { ports, icrc: false, ..options() });
        (analysis.analyzer.totals.roce.iter().sum::<u64>(), analysis.analyzer.totals.other)
    };
    assert_eq!((analyse(vec![]), analyse(vec![4792])), ((0, 8), (8, 0)));
}

#[test]
fn headers_and_payload_add_up_to_the_bytes_on_the_wire() {
    let frames = lossy();
    let Analysis { analyzer, .. } = Analysis::of_frames(&frames, options());
    let totals = &analyzer.totals;
    let headers: u64 = totals.by_header().iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(headers + totals.payload_bytes, totals.wire_bytes);
    let captured: usize = frames.iter().map(|captured| captured.frame.len()).sum();
    assert_eq!((totals.wire_bytes, totals.bytes), (captured as u64, captured as u64));
    let series: u64 = analyzer.series.intervals().iter().map(|one| u64::from(one.packets)).sum();
    assert_eq!(series, totals.packets);
}

#[test]
fn flow_control_frames_are_counted() {
    let control = |opcode: u16, classes: u16| {
        let mut frame = vec![1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08];
        frame.extend([opcode.to_be_bytes(), classes.to_be_bytes()].concat());
        frame.resize(60, 0);
        frame
    };
    let frames = each_microsecond([control(0x0101, 0b1001), control(0x0001, 0), vec![0; 60]]);
    let totals = Analysis::of_frames(&frames, options()).analyzer.totals;
    assert_eq!((totals.pfc, totals.pause, totals.other), (1, 1, 1));
    assert_eq!(totals.pfc_classes, [1, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn times_that_decrease_are_counted() {
    let mut frames = writes(0..4);
    frames[5].time_ns = START_NS - 1;
    let analyzer = Analysis::of_frames(&frames, Options { sort: false, ..options() }).analyzer;
    assert_eq!(analyzer.backwards, 1);
    assert_eq!(analyzer.times, Some((START_NS - 1, START_NS + 7000)));
}

#[test]
fn an_empty_capture_has_no_results() {
    let analysis = Analysis::of_frames(&[], Options { threads: 3, ..options() });
    assert_eq!((analysis.connections.len(), analysis.packets.num_rows()), (0, 0));
    assert_eq!((analysis.analyzer.times, analysis.analyzer.totals.packets), (None, 0));
    assert!(analysis.analyzer.errors().is_empty());
    let silent = ethernet(A, B, 1, &Transport::new(opcode::SEND_ONLY, 1, 1));
    assert_eq!(Analysis::of_frames(&each_microsecond([silent]), options()).connections.len(), 1);
}
