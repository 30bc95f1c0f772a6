// SPDX-License-Identifier: GPL-2.0-or-later
//! [`Table`]: Arrow batches by the PyCapsule interface.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

const STREAM: &CStr = c"arrow_array_stream";

pub(crate) fn bug(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Batches of one schema. Libraries with Arrow's PyCapsule interface read them without a copy.
#[pyclass(frozen, module = "rocelab._core")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(batches: Vec<RecordBatch>) -> PyResult<Self> {
        let schema = batches.first().map(RecordBatch::schema);
        let schema = schema.ok_or_else(|| PyRuntimeError::new_err("a table needs a batch"))?;
        Ok(Self { schema, batches })
    }
}

#[pymethods]
impl Table {
    /// The number of rows.
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The Arrow C stream of the table.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // the interface allows ignoring a request for other types
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}
