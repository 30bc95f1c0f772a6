// SPDX-License-Identifier: GPL-2.0-or-later
//! [`capture_start`]: when a capture begins.

use std::fs::File;
use std::path::PathBuf;

use engine::read::{Block, Counter, ReadError, Reader, open_compressed};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Bytes of which the first packet is in the first ones.
const BEGINNING: usize = 64 << 10;

/// The time of the first packet of a capture, ns since 1970; None if there is none yet. OSError if it cannot be
/// read, ValueError if it is no capture.
#[pyfunction]
pub(crate) fn capture_start(py: Python<'_>, path: PathBuf) -> PyResult<Option<i64>> {
    py.detach(|| {
        let input = open_compressed(Box::new(File::open(path)?), Counter::default())?;
        let mut block = Block::default();
        match Reader::new(input, 0, BEGINNING).of_growing().fill(&mut block) {
            Err(ReadError::Unknown(_)) => Err(PyValueError::new_err("it is no capture")),
            // whoever reads it reports what is wrong further on
            _ => Ok(block.records.first().map(|record| record.time_ns)),
        }
    })
}
