// SPDX-License-Identifier: GPL-2.0-or-later
//! [`Annotation`]: the annotated copy of a capture, step by step.

use std::fs::{File, OpenOptions};
use std::io::BufWriter;
use std::path::PathBuf;

use engine::annotate::{Annotator, CopyError, Options};
use engine::join::{CaptureJoin, JoinOptions};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use roce::flow::PsnStatus;
use roce::join::{Received, Reject, Sent};

use crate::named_counts::counts;
use crate::trace_inputs::{open, open_traces};

/// Blocks between two steps.
const STEPS: usize = 8;

/// An annotation in progress. Call `step` until it returns False, then `finish`.
#[pyclass(module = "rocelab._core")]
pub(crate) struct Annotation {
    work: Annotator<BufWriter<File>>,
    lost: Vec<u64>,
}

fn failed(error: &CopyError) -> PyErr {
    match error {
        CopyError::Write(error) => PyOSError::new_err((error.raw_os_error(), error.to_string())),
        other => PyOSError::new_err(other.to_string()),
    }
}

#[pymethods]
impl Annotation {
    /// Opens the capture, the traces of the nodes (possibly none) and the new file, which must exist and
    /// is truncated. OSError if one cannot be opened.
    #[new]
    #[pyo3(signature = (wire, traces, output, *, ports=Vec::new(), window=1 << 17, threads=1,
        go_back_n=false, looks=Vec::new(), follow_corrupt=false, without_icrc=None, sampled=false,
        verdict=Vec::new(), comment=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        wire: PathBuf,
        traces: Vec<PathBuf>,
        output: PathBuf,
        ports: Vec<u16>,
        window: usize,
        threads: usize,
        go_back_n: bool,
        looks: Vec<(u64, u32)>,
        follow_corrupt: bool,
        without_icrc: Option<&str>,
        sampled: bool,
        verdict: Vec<(u64, String)>,
        comment: Option<String>,
    ) -> PyResult<Self> {
        if traces.len() > 1024 {
            return Err(PyValueError::new_err("up to 1024 traces"));
        }
        let inputs = open_traces(&traces)?;
        let lost = inputs.iter().map(|(_, trace)| trace.lost).collect();
        let join = if inputs.is_empty() {
            None
        } else {
            // packets that leave the window of the join are still in that of the copy
            let window = (window / 2).max(1);
            let options = JoinOptions { ports: ports.clone(), window, packets: false, rows: true };
            Some(CaptureJoin::new(open(&wire)?, inputs, &options))
        };
        let file = OpenOptions::new().write(true).truncate(true).open(&output)?;
        let absence = without_icrc.and_then(roce::icrc::Absence::of_name);
        let options = Options {
            ports,
            threads,
            go_back_n,
            window,
            looks,
            absence,
            follow_corrupt,
            sampled,
            verdict,
            comment,
        };
        let output = BufWriter::with_capacity(1 << 18, file);
        let work = Annotator::new(open(&wire)?, open(&wire)?, output, join, &options);
        Ok(Self { work, lost })
    }

    /// Copies the next blocks; False when the new file is complete. OSError if it cannot be written.
    fn step(&mut self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| {
            for _ in 0..STEPS {
                if !self.work.step()? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .map_err(|error: CopyError| failed(&error))
    }

    /// Returns what was written, as documented in docs/formats/annotate.md (`file` as an index: 0 is the
    /// capture). OSError if the rest of the new file cannot be written.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let result = PyDict::new(py);
        let Annotator { copier, notes, analyzer, join, error, .. } = &mut self.work;
        copier.flush().map_err(|error| failed(&CopyError::Write(error)))?;
        result.set_item("packets", copier.packets)?;
        result.set_item("roce", analyzer.totals.roce.iter().sum::<u64>())?;
        result.set_item("commented", copier.commented)?;
        result.set_item("no_room", copier.bare)?;
        result.set_item("late", notes.late)?;
        let written = &notes.written;
        result.set_item(
            "psn_status",
            counts(py, PsnStatus::ALL, &written.status, PsnStatus::name)?,
        )?;
        result.set_item("responses", written.responses)?;
        result.set_item("messages", written.messages)?;
        result.set_item("findings", written.findings)?;
        result.set_item("verdict", written.verdict)?;
        let kept = written.findings + notes.unplaced;
        let all = analyzer.tracker.findings.total();
        result.set_item("findings_unplaced", notes.unplaced + all.saturating_sub(kept))?;
        let errors = PyList::empty(py);
        let tell = |file: u16, error: &dyn std::fmt::Display| -> PyResult<()> {
            let row = PyDict::new(py);
            row.set_item("file", file)?;
            row.set_item("error", error.to_string())?;
            errors.append(row)
        };
        for (_, error) in analyzer.errors() {
            tell(0, error)?;
        }
        // the analysis reports most of these errors too
        if let Some(error) = error.as_ref().filter(|_| analyzer.errors().is_empty()) {
            tell(0, error)?;
        }
        let Some(join) = join else {
            result.set_item("driver", py.None())?;
            result.set_item("errors", errors)?;
            return Ok(result);
        };
        for (file, error) in join.errors().iter().filter(|(file, _)| *file > 0) {
            tell(*file, error)?;
        }
        let tally = join.tally();
        let driver = PyDict::new(py);
        driver.set_item("tx", written.driver[0])?;
        driver.set_item("rx", written.driver[1])?;
        driver.set_item("sent", counts(py, Sent::ALL, &tally.sent, Sent::name)?)?;
        driver.set_item("received", counts(py, Received::ALL, &tally.received, Received::name)?)?;
        driver.set_item("unexplained", tally.unexplained)?;
        driver.set_item("early", tally.early)?;
        driver.set_item("lost", self.lost.clone())?;
        driver.set_item("rejected", counts(py, &Reject::ALL, &join.rejected, Reject::name)?)?;
        result.set_item("driver", driver)?;
        result.set_item("errors", errors)?;
        Ok(result)
    }
}
