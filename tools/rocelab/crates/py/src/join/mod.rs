// SPDX-License-Identifier: GPL-2.0-or-later
//! The join of a capture with the drivers' records: files in, Arrow rows out.

mod columns;
mod engine;
mod interleave;
mod names;
#[cfg(feature = "python")]
pub(crate) mod python;
mod statistics;

pub use columns::JoinedColumns;
pub use engine::{JoinEngine, JoinOptions};
pub use statistics::account;
