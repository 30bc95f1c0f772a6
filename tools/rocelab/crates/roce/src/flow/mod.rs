// SPDX-License-Identifier: GPL-2.0-or-later
//! Follows connections: directions, their pairing, and what each packet means for them.

mod context;
mod direction;
mod key;
mod message;
mod pair;
pub(crate) mod psn;
mod report;
mod requests;
mod responses;
mod stats;
mod steady;
mod tracker;
mod verdict;
mod wellformed;

pub use message::{Efficiency, Message, SizeClass};
pub use pair::PairedBy;
pub use report::{Connection, Endpoint};
pub use stats::{Retransmissions, Stats};
pub use steady::Stretch;
pub use tracker::{Config, Tracker};
pub use verdict::{PsnStatus, Verdict};
