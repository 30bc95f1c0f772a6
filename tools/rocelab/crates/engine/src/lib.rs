// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads captures, runs crate `roce` over them, and gives the results as Arrow tables.

mod analyzer;
pub mod annotate;
mod batch;
mod copies;
mod filter;
pub mod join;
pub mod read;
mod tables;
mod totals;
mod workers;

pub use analyzer::{Analyzer, BadIcrc, Options};
pub use filter::Filter;
pub use tables::{ConnectionColumns, FindingColumns, MessageColumns, PacketColumns};
pub use totals::{ETHERNET_EXTRA, Totals};
