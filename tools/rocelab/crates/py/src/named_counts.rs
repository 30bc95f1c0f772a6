// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts by name, for results.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The counts that are not zero, by name.
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
