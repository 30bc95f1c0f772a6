// SPDX-License-Identifier: GPL-2.0-or-later
//! Opens captures and traces by path.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use engine::join::account;
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
