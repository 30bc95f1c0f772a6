// SPDX-License-Identifier: GPL-2.0-or-later
//! Opens captures and traces by path.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use engine::join::{Origin, account, origin};
use engine::read::{Counter, Input, open_compressed};
use pyo3::prelude::*;
use roce::join::Trace;

pub(crate) fn open(path: &Path) -> PyResult<Input> {
    Ok(open_compressed(Box::new(File::open(path)?), Counter::default())?)
}

/// Opens traces, each with the account of what it lacks.
pub(crate) fn open_traces(paths: &[PathBuf]) -> PyResult<Vec<(Input, Trace)>> {
    let opened = paths.iter().map(|path| {
        let trace = account(BufReader::with_capacity(1 << 16, open(path)?))?;
        Ok((open(path)?, trace))
    });
    opened.collect()
}

/// Who wrote a file, by its beginning: `rxedump`, `commented` (unknown, but packets have rxedump's comments),
/// `other`, or `unknown` (no packet can be read). OSError if it cannot be opened.
#[pyfunction]
pub(crate) fn trace_origin(path: PathBuf) -> PyResult<&'static str> {
    Ok(match origin(open(&path)?) {
        Origin::Rxedump => "rxedump",
        Origin::Commented => "commented",
        Origin::Other => "other",
        Origin::Unknown => "unknown",
    })
}
