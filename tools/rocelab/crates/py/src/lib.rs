// SPDX-License-Identifier: GPL-2.0-or-later
//! `rocelab._core`: crate `rocelab-engine` for Python.

mod analysis_class;
mod analysis_result;
mod annotation_class;
mod arrow_table;
mod capture_start_function;
mod cm_result;
mod excerpt_function;
mod frame_counts_function;
mod join_class;
mod named_counts;
mod trace_inputs;

use pyo3::prelude::*;
use roce::opcode;

/// The native module of the package `rocelab`.
#[pymodule]
mod _core {
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::{
        analysis_class::Analysis, annotation_class::Annotation, arrow_table::Table,
        capture_start_function::capture_start, excerpt_function::write_excerpt,
        frame_counts_function::count_frames, join_class::Join, opcodes, trace_inputs::trace_origin,
    };
}

/// The BTH opcodes of the specification: code and name.
#[pyfunction]
pub(crate) fn opcodes() -> Vec<(u8, &'static str)> {
    opcode::all().iter().map(|op| (op.code, op.name)).collect()
}
