// SPDX-License-Identifier: GPL-2.0-or-later
//! [`Join`]: the join of a capture with traces, step by step.

use std::path::PathBuf;

use engine::join::{CaptureJoin, JoinOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use roce::join::{Received, Reject, Sent};

use crate::arrow_table::{Table, bug};
use crate::named_counts::counts;
use crate::trace_inputs::{open, open_traces};

/// Packets between two steps.
const STEP: usize = 1 << 14;

/// A join in progress. Call `step` until it returns False, then `finish`.
#[pyclass(module = "rocelab._core")]
pub(crate) struct Join {
    join: CaptureJoin,
    lost: Vec<u64>,
}

#[pymethods]
impl Join {
    /// Opens the capture between the nodes and the traces of the nodes. OSError if one cannot be opened.
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
        let inputs = open_traces(&traces)?;
        let lost = inputs.iter().map(|(_, trace)| trace.lost).collect();
        let options = JoinOptions { ports, window, packets, rows: false };
        Ok(Self { join: CaptureJoin::new(open(&wire)?, inputs, &options), lost })
    }

    /// Joins the next packets; False at the end of all files.
    fn step(&mut self, py: Python<'_>) -> bool {
        py.detach(|| self.join.step(STEP))
    }

    /// Rows that `take_packets` would return.
    #[getter]
    fn pending_packets(&self) -> usize {
        self.join.columns.len()
    }

    /// The packet rows since the last call.
    fn take_packets(&mut self) -> PyResult<Table> {
        Table::new(vec![self.join.columns.take().map_err(bug)?])
    }

    /// Joins the rest and returns the sums, as documented in docs/formats/join.md (`file` as an index:
    /// 0 is the capture).
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        py.detach(|| self.join.finish());
        let tally = self.join.tally();
        let result = PyDict::new(py);
        let wire = PyDict::new(py);
        wire.set_item("frames", tally.frames)?;
        wire.set_item("again", tally.frames_again)?;
        wire.set_item("cut_headers", self.join.cut[0])?;
        wire.set_item("other", self.join.other[0])?;
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
        records.set_item("without_comment", self.join.bare)?;
        records.set_item("cut_headers", self.join.cut[1])?;
        records.set_item("other", self.join.other[1])?;
        let rejected = counts(py, &Reject::ALL, &self.join.rejected, Reject::name)?;
        records.set_item("rejected", rejected)?;
        result.set_item("records", records)?;
        result.set_item("unexplained", tally.unexplained)?;
        result.set_item("early", tally.early)?;
        let errors = PyList::empty(py);
        for (file, error) in self.join.errors() {
            let row = PyDict::new(py);
            row.set_item("file", file)?;
            row.set_item("error", error.to_string())?;
            errors.append(row)?;
        }
        result.set_item("errors", errors)?;
        Ok(result)
    }
}
