// SPDX-License-Identifier: GPL-2.0-or-later
//! Traces of reliable connections, written from chapter 9 of the InfiniBand specification alone: it
//! shares no code with the decoder and the tracker that it tests.

mod connection;
pub mod frame;
mod random;

pub use connection::{Lost, Plan, Side, Trace, simulate};
pub use random::Random;
