// SPDX-License-Identifier: GPL-2.0-or-later
//! [`Analysis`]: the analyzer, step by step.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use engine::read::{Counter, Input, Unchanged, open_compressed};
use engine::{
    Analyzer, ConnectionColumns, Filter, FindingColumns, InputOpener, MessageColumns, Network,
    Options,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use roce::finding::At;
use roce::flow::{Config, Connection, Message};
use roce::icrc::Absence;

use crate::analysis_result::{Detail, evidence, result_dict};
use crate::arrow_table::{Table, bug};

/// Between two steps Python looks at its signals, at progress, and at full tables.
const BLOCKS_PER_STEP: usize = 8;

/// Of more files only those are open whose time has come.
const MAX_OPEN: usize = 128;
/// Between two looks at signals, where a pipe has no writer, or has brought nothing yet.
const WAIT: Duration = Duration::from_millis(50);

fn is_file(path: &Path) -> bool {
    path.as_os_str() != "-" && path.is_file()
}

/// Opens a capture, and reads what shows how it is compressed.
fn open(path: &Path, counter: &Counter) -> io::Result<Input> {
    let raw: Input =
        if path.as_os_str() == "-" { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
    open_compressed(raw, Arc::clone(counter))
}

/// As [`open`], in a thread, which waits for a pipe's writer as long as it takes: a signal ends only
/// this wait for it.
fn interruptibly(py: Python<'_>, path: &Path, counter: &Counter) -> PyResult<Input> {
    let (to, mut from) = channel();
    let (path, counter) = (path.to_owned(), Arc::clone(counter));
    Builder::new().name("open".to_owned()).spawn(move || to.send(open(&path, &counter)))?;
    loop {
        let came;
        (from, came) = py.detach(move || {
            let came = from.recv_timeout(WAIT);
            (from, came)
        });
        match came {
            Ok(opened) => return Ok(opened?),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

/// An analysis in progress. Call `step` until it returns False, then `finish`.
#[pyclass(module = "rocelab._core")]
pub(crate) struct Analysis {
    analyzer: Analyzer,
    taken: Vec<Counter>,
    connections: Vec<Connection>,
    messages: Vec<Message>,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Analysis {
    /// Opens captures by path; `-` is standard input. With `excerpts`, the paths are those of excerpts. Without
    /// a path, `append` gives the first. OSError if one cannot be opened.
    #[new]
    #[pyo3(signature = (paths, *, ports=Vec::new(), icrc=true, threads=1, packets=false,
        messages=false, max_findings=1000, max_connections=16384, go_back_n=false,
        networks=Vec::new(), time_ns=None, qpns=Vec::new(), opcodes=Vec::new(),
        connections=Vec::new(), offsets_ns=Vec::new(), looks=Vec::new(), follow_corrupt=false,
        without_icrc=None,
        excerpts=false))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        ports: Vec<u16>,
        icrc: bool,
        threads: usize,
        packets: bool,
        messages: bool,
        max_findings: usize,
        max_connections: usize,
        go_back_n: bool,
        networks: Vec<([u8; 16], u8)>,
        time_ns: Option<(i64, i64)>,
        qpns: Vec<u32>,
        opcodes: Vec<u8>,
        connections: Vec<u32>,
        offsets_ns: Vec<i64>,
        looks: Vec<(u64, u32)>,
        follow_corrupt: bool,
        without_icrc: Option<&str>,
        excerpts: bool,
    ) -> PyResult<Self> {
        if paths.len() > usize::from(u16::MAX) {
            return Err(PyValueError::new_err("at most 65535 captures"));
        }
        let are_files = paths.iter().all(|path| is_file(path));
        let taken: Vec<Counter> = paths.iter().map(|_| Counter::default()).collect();
        let mut inputs = Vec::new();
        let mut openers: Vec<InputOpener> = Vec::new();
        for (path, counter) in paths.iter().zip(&taken) {
            let input = if is_file(path) {
                open(path, counter)?
            } else {
                interruptibly(py, path, counter)?
            };
            if are_files && !excerpts && paths.len() > MAX_OPEN {
                openers.push(opener(path.clone(), Arc::clone(counter)));
            } else {
                inputs.push(input);
            }
        }
        let mut filter = Filter::default();
        filter.networks = networks.into_iter().map(|(of, bits)| Network::new(of, bits)).collect();
        filter.time_ns = time_ns;
        filter.qpns = qpns;
        filter.opcodes = opcodes;
        filter.connections = connections;
        let tracker = Config {
            max_findings,
            max_connections,
            go_back_n,
            keep_messages: messages,
            without_copies: !looks.is_empty(),
            follow_corrupt,
            ..Config::default()
        };
        let options = Options {
            ports,
            icrc,
            threads,
            read_ahead: are_files && !paths.is_empty(),
            packets,
            filter,
            tracker,
            sort: true,
            offsets_ns,
            looks,
            absence: without_icrc.and_then(Absence::of_name),
        };
        let analyzer = match excerpts {
            true => Analyzer::of_excerpts(inputs, options),
            false if !openers.is_empty() => Analyzer::of_parts(openers, options),
            false => Analyzer::new(inputs, options),
        };
        Ok(Self {
            analyzer,
            taken,
            connections: Vec::new(),
            messages: Vec::new(),
            batches: Vec::new(),
        })
    }

    /// Analyses the next blocks; False at the end.
    fn step(&mut self, py: Python<'_>) -> bool {
        py.detach(|| {
            let mut more = true;
            for _ in 0..BLOCKS_PER_STEP {
                more = self.analyzer.step();
                self.messages.append(&mut self.analyzer.take_messages());
                if !more || self.analyzer.interrupted() {
                    break;
                }
            }
            more
        })
    }

    /// Goes on with a capture that was written after all others, when `step` has returned False; of an analysis
    /// without paths. It begins with `head`: once it does not, it was overwritten, and what was read since is an
    /// error, not packets. One that is `growing` may end within a record. OSError if it cannot be opened.
    #[pyo3(signature = (path, *, head, growing=false))]
    fn append(&mut self, path: std::path::PathBuf, head: Vec<u8>, growing: bool) -> PyResult<()> {
        let counter = Counter::default();
        let file = Box::new(Unchanged::new(File::open(path)?, head));
        let input = open_compressed(file, Arc::clone(&counter))?;
        self.analyzer.append(input, growing);
        self.taken = vec![counter];
        Ok(())
    }

    /// Ends the captures here; `step` then analyses what was read, and `finish` follows.
    fn stop(&mut self) {
        self.analyzer.stop();
    }

    /// Bytes read from the files, before decompression.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.taken.iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }

    /// Rows that `take_packets` would return.
    #[getter]
    fn pending_packets(&self) -> usize {
        self.analyzer.packets.len()
    }

    /// Rows that `take_messages` would return.
    #[getter]
    fn pending_messages(&self) -> usize {
        self.messages.len()
    }

    /// The packet rows since the last call.
    fn take_packets(&mut self) -> PyResult<Table> {
        Table::new(vec![self.analyzer.packets.take().map_err(bug)?])
    }

    /// The message rows since the last call, perhaps only of these connections; after `finish`, without those that came
    /// to nothing.
    #[pyo3(signature = (connections=None))]
    fn take_messages(&mut self, connections: Option<HashSet<u32>>) -> PyResult<Table> {
        let chosen = |id: &u32| connections.as_ref().is_none_or(|chosen| chosen.contains(id));
        let mut columns = MessageColumns::default();
        for message in std::mem::take(&mut self.messages) {
            if chosen(&message.connection) {
                columns.push(&message);
            }
        }
        Table::new(vec![columns.take().map_err(bug)?])
    }

    /// Keeps the packet rows so far as a batch of [`Self::packets`].
    fn keep_packets(&mut self) -> PyResult<()> {
        self.batches.push(self.analyzer.packets.take().map_err(bug)?);
        Ok(())
    }

    /// All batches kept by `keep_packets`; after `finish`, with the numbers of their connections.
    fn packets(&mut self) -> PyResult<Table> {
        self.keep_packets()?;
        let batches = std::mem::take(&mut self.batches);
        let kept = &self.analyzer.tracker.renumbered;
        if kept.is_empty() {
            return Table::new(batches);
        }
        let batches = batches.into_iter().map(|batch| renumbered(&batch, kept)).collect();
        Table::new(batches)
    }

    /// What `finish` would return if the captures ended here; the analysis goes on.
    fn snapshot<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.analyzer
            .snapshot(|analyzer, connections| result_dict(py, analyzer, connections, Detail::Full))
    }

    /// Ends all connections and returns what the packets show about the capture as a whole. `withdrawn` are the
    /// messages that `take_messages` has given, and that came to nothing: connection, file, packet, time, bytes.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.connections = self.analyzer.finish();
        self.messages.append(&mut self.analyzer.take_messages());
        let place = |at: At| (at.file, at.packet);
        let withdrawn = &mut self.analyzer.tracker.withdrawn;
        let all: HashSet<_> = withdrawn.iter().map(|one| place(one.at)).collect();
        let kept: HashSet<_> = self.messages.iter().map(|one| place(one.last)).collect();
        self.messages.retain(|one| !all.contains(&place(one.last)));
        withdrawn.retain(|one| !kept.contains(&place(one.at)));
        self.analyzer.tracker.renumber_messages(&mut self.messages);
        evidence(py, &self.analyzer)
    }

    /// The result, as documented in docs/formats/analysis.md (without `schema`, and `file` as an index), and the
    /// `evidence` that `finish` has returned. With `for_verdict`, connections have only what a verdict is judged by.
    #[pyo3(signature = (*, for_verdict=false))]
    fn result<'py>(&self, py: Python<'py>, for_verdict: bool) -> PyResult<Bound<'py, PyDict>> {
        let detail = if for_verdict { Detail::Verdict } else { Detail::Full };
        result_dict(py, &self.analyzer, &self.connections, detail)
    }

    /// Numbers in rows that were taken before `finish`, and those of their connections: there, a message is `from`
    /// the end b.
    #[getter]
    fn renumbered(&self) -> HashMap<u32, u32> {
        self.analyzer.tracker.renumbered.clone()
    }

    /// The connection table, perhaps only of some; after `finish`.
    #[pyo3(signature = (connections=None))]
    fn connections(&self, connections: Option<HashSet<u32>>) -> PyResult<Table> {
        let chosen = |id: &u32| connections.as_ref().is_none_or(|chosen| chosen.contains(id));
        let mut columns = ConnectionColumns::default();
        for connection in self.connections.iter().filter(|one| chosen(&one.id)) {
            columns.push(connection);
        }
        Table::new(vec![columns.take().map_err(bug)?])
    }

    /// The finding table, perhaps only of some connections; after `finish`.
    #[pyo3(signature = (connections=None))]
    fn findings(&self, connections: Option<HashSet<u32>>) -> PyResult<Table> {
        let chosen = |id: Option<u32>| {
            connections.as_ref().is_none_or(|chosen| id.is_some_and(|id| chosen.contains(&id)))
        };
        let mut columns = FindingColumns::default();
        for finding in &self.analyzer.tracker.findings.list {
            if chosen(finding.connection) {
                columns.push(finding);
            }
        }
        Table::new(vec![columns.take().map_err(bug)?])
    }
}

/// The rows with the connection numbers that those of `kept` stand for.
fn renumbered(batch: &RecordBatch, kept: &HashMap<u32, u32>) -> RecordBatch {
    let mut columns = batch.columns().to_vec();
    if let Ok(index) = batch.schema().index_of("connection") {
        if let Some(ids) = columns[index].as_primitive_opt::<UInt32Type>() {
            let right = ids.unary::<_, UInt32Type>(|id| kept.get(&id).copied().unwrap_or(id));
            columns[index] = Arc::new(right);
        }
    }
    RecordBatch::try_new(batch.schema(), columns).unwrap_or_else(|_| batch.clone())
}

/// Opens a file, and counts what is read of it from the beginning.
fn opener(path: std::path::PathBuf, counter: Counter) -> InputOpener {
    Box::new(move || {
        counter.store(0, Ordering::Relaxed);
        open_compressed(Box::new(File::open(&path)?), Arc::clone(&counter))
    })
}
