// SPDX-License-Identifier: GPL-2.0-or-later
//! `rocelab._core`: capture readers, and the analysis of crate `roce` as Arrow tables.

pub mod annotate;
mod engine;
pub mod join;
mod lane;
#[cfg(feature = "python")]
mod python;
pub mod read;
mod select;
mod tables;
mod totals;
mod workers;

pub use engine::{BadIcrc, Engine, Options};
pub use select::Select;
pub use tables::{ConnectionColumns, FindingColumns, MessageColumns, PacketColumns};
pub use totals::{ETHERNET_EXTRA, Totals};

#[cfg(feature = "python")]
use pyo3::prelude::*;

/// The native module of the package `rocelab`.
#[cfg(feature = "python")]
#[pymodule]
mod _core {
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::annotate::python::Annotation;

    #[pymodule_export]
    use crate::join::python::Join;

    #[pymodule_export]
    use crate::python::{Analysis, Table, opcodes};
}
