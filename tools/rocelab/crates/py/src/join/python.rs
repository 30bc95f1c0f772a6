// SPDX-License-Identifier: GPL-2.0-or-later
//! [`Join`] as Python sees it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use roce::join::{Received, Reject, Sent};

use super::engine::{JoinEngine, JoinOptions};
use super::statistics::account;
use crate::python::{Table, bug};
use crate::read::{Counter, Input, open_compressed};

/// Packets between two looks at what Python wants.
const STEP: usize = 1 << 14;

pub(crate) fn open(path: &Path) -> PyResult<Input> {
    Ok(open_compressed(Box::new(File::open(path)?), Counter::default())?)
}

/// A join under way. Call `step` until it is false, then `finish`.
#[pyclass(module = "rocelab._core")]
pub(crate) struct Join {
    engine: JoinEngine,
    lost: Vec<u64>,
}

#[pymethods]
impl Join {
    /// Open the capture between the nodes and the nodes' traces. OSError if one cannot be opened.
    #[new]
    #[pyo3(signature = (wire, traces, *, ports=Vec::new(), window=0, packets=true))]
    fn new(
        wire: PathBuf,
        traces: Vec<PathBuf>,
        ports: Vec<u16>,
        window: usize,
        packets: bool,
    ) -> PyResult<Self> {
        if traces.is_empty() || traces.len() > 1024 {
            return Err(PyValueError::new_err("between 1 and 1024 traces"));
        }
        let mut inputs = Vec::new();
        for path in &traces {
            let trace = account(io::BufReader::with_capacity(1 << 16, open(path)?))?;
            inputs.push((open(path)?, trace));
        }
        let lost = inputs.iter().map(|(_, trace)| trace.lost).collect();
        let options = JoinOptions { ports, window, packets, rows: false };
        Ok(Self { engine: JoinEngine::new(open(&wire)?, inputs, &options), lost })
    }

    /// Take in the next packets; False at the end of all files.
    fn step(&mut self, py: Python<'_>) -> bool {
        py.detach(|| self.engine.step(STEP))
    }

    /// Rows of the packet table that were not taken yet.
    #[getter]
    fn pending_packets(&self) -> usize {
        self.engine.columns.len()
    }

    /// The packet rows since the last call.
    fn take_packets(&mut self) -> PyResult<Table> {
        Table::new(vec![self.engine.columns.take().map_err(bug)?])
    }

    /// Join what is left, and give the sums, as documented in docs/formats/join.md (`file` as an
    /// index: 0 is the capture).
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        py.detach(|| self.engine.finish());
        let tally = self.engine.tally();
        let result = PyDict::new(py);
        let wire = PyDict::new(py);
        wire.set_item("frames", tally.frames)?;
        wire.set_item("again", tally.frames_again)?;
        wire.set_item("cut_headers", self.engine.cut[0])?;
        wire.set_item("other", self.engine.other[0])?;
        wire.set_item("sent", counts(py, Sent::ALL, &tally.sent, Sent::name)?)?;
        wire.set_item("received", counts(py, Received::ALL, &tally.received, Received::name)?)?;
        result.set_item("wire", wire)?;
        let records = PyDict::new(py);
        records.set_item("tx", tally.tx)?;
        records.set_item("rx", tally.rx)?;
        records.set_item("tx_alone", counts(py, Sent::ALL, &tally.tx_alone, Sent::name)?)?;
        let alone = counts(py, Received::ALL, &tally.rx_alone, Received::name)?;
        records.set_item("rx_alone", alone)?;
        records.set_item("lost", self.lost.clone())?;
        records.set_item("without_comment", self.engine.bare)?;
        records.set_item("cut_headers", self.engine.cut[1])?;
        records.set_item("other", self.engine.other[1])?;
        let rejected = counts(py, &Reject::ALL, &self.engine.rejected, Reject::name)?;
        records.set_item("rejected", rejected)?;
        result.set_item("records", records)?;
        result.set_item("unexplained", tally.unexplained)?;
        result.set_item("early", tally.early)?;
        let errors = PyList::empty(py);
        for (file, error) in self.engine.errors() {
            let row = PyDict::new(py);
            row.set_item("file", file)?;
            row.set_item("error", error.to_string())?;
            errors.append(row)?;
        }
        result.set_item("errors", errors)?;
        Ok(result)
    }
}

pub(crate) fn counts<'py, T: Copy>(
    py: Python<'py>,
    all: &[T],
    counts: &[u64],
    name: impl Fn(T) -> &'static str,
) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    for (one, count) in all.iter().zip(counts) {
        if *count > 0 {
            result.set_item(name(*one), count)?;
        }
    }
    Ok(result)
}
