// SPDX-License-Identifier: GPL-2.0-or-later
//! [`write_excerpt`]: what the analysis of several captures needs of one.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use engine::piece;
use engine::read::{Counter, open_compressed};
use pyo3::prelude::*;
use roce::Ports;

/// Verifies a capture, and writes an excerpt of it to a new file `output`. `captures`: how many captures are
/// analysed together. OSError if the capture cannot be opened, or the excerpt not be written.
#[pyfunction]
#[pyo3(signature = (path, output, *, ports=Vec::new(), icrc=true, captures=1))]
pub(crate) fn write_excerpt(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
    ports: Vec<u16>,
    icrc: bool,
    captures: usize,
) -> PyResult<()> {
    py.detach(|| {
        let input = open_compressed(Box::new(File::open(path)?), Counter::default())?;
        let mut file = BufWriter::new(File::create_new(output)?);
        let ports = Ports::with(&ports);
        engine::read::write_excerpt(input, &mut file, &ports, icrc, piece(captures))?;
        Ok(file.flush()?)
    })
}
