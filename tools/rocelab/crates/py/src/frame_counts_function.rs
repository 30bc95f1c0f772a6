// SPDX-License-Identifier: GPL-2.0-or-later
//! [`count_frames`]: what a capture of an Ethernet link holds.

use std::fs::File;
use std::path::PathBuf;

use engine::FrameCounts;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Counts the frames of a capture; TCP on `control_ports` is not the benchmark's. OSError if it cannot be
/// opened, ValueError if it is not a whole capture of an Ethernet link.
#[pyfunction]
#[pyo3(signature = (path, *, control_ports=Vec::new()))]
pub(crate) fn count_frames(
    py: Python<'_>,
    path: PathBuf,
    control_ports: Vec<u16>,
) -> PyResult<Bound<'_, PyDict>> {
    let counted = py.detach(|| -> PyResult<FrameCounts> {
        let file = Box::new(File::open(path)?);
        engine::count_frames(file, &control_ports)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    })?;
    let result = PyDict::new(py);
    macro_rules! by_name {
        ($($name:ident)*) => { $( result.set_item(stringify!($name), counted.$name)?; )* };
    }
    by_name! {
        frames bytes roce_v1 roce_v2 roce_data roce_data_bytes roce_payload_bytes
        tcp tcp_data tcp_data_bytes tcp_payload_bytes
        iwarp iwarp_data iwarp_data_bytes iwarp_payload_bytes
        control control_payload_bytes other undecoded
    }
    Ok(result)
}
