// SPDX-License-Identifier: GPL-2.0-or-later
//! Traces of reliable connections, written from chapter 9 of the InfiniBand specification alone: it
//! shares no code with the decoder and the tracker that it tests.

mod connection;
pub mod frame;
mod message;
mod packet;
mod plan;
mod psn;
mod random;
mod requester;
mod requester_rules;
mod responder;
mod responder_rules;
mod trace;

pub use connection::simulate;
pub use plan::{Plan, Recovery};
pub use random::Random;
pub use trace::{Cause, Fate, Mishap, Resend, Seen, Side, Trace};
