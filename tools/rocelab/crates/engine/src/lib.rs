// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads captures, runs crate `roce` over them, and gives the results as Arrow tables.

mod analyzer;
pub mod annotate;
mod batch;
mod changed_fields;
mod copies;
mod decoded;
mod ethernet;
mod filter;
mod fragments;
mod frame_counts;
pub mod join;
mod pauses;
pub mod read;
mod read_ahead;
mod tables;
mod totals;
mod workers;
mod wrong_icrcs;

pub use analyzer::{Analyzer, BadIcrc, InputOpener, Options, piece};
pub use changed_fields::Changed;
pub use ethernet::{Mac, mac_text};
pub use filter::{Filter, Network};
pub use frame_counts::{FrameCounts, count_frames};
pub use pauses::{Pause, Pauses};
pub use tables::{ConnectionColumns, FindingColumns, MessageColumns, PacketColumns};
pub use totals::{ETHERNET_EXTRA, Totals};
pub use wrong_icrcs::{Common, WrongIcrcs};
