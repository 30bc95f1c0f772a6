// SPDX-License-Identifier: GPL-2.0-or-later
//! Joins a capture with the records of drivers: files in, Arrow rows out.

mod capture_join;
mod interleave;
mod joined_columns;
mod name_table;
mod trace_account;
mod trace_origin;

pub use capture_join::{CaptureJoin, JoinOptions};
pub use joined_columns::JoinedColumns;
pub use trace_account::account;
pub use trace_origin::{Origin, origin};
