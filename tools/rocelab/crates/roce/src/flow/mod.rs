// SPDX-License-Identifier: GPL-2.0-or-later
//! Follows connections: pairs the two directions and judges each packet.

mod assembly;
mod connection;
mod context;
mod costs;
mod direction;
mod efficiency;
mod evidence;
mod exchanges;
mod flow_key;
mod look_ahead;
mod message;
mod pairing;
pub(crate) mod psn;
mod requests;
mod responses;
mod run;
mod stats;
mod tracker;
mod unlisted;
mod verdict;
mod wellformed;

pub use connection::{Connection, Endpoint};
pub use costs::{Cost, Costs, Episode, Pace, Repair, Trouble};
pub use efficiency::{Efficiency, SizeClass};
pub use evidence::{ClockOffset, Evidence};
pub use exchanges::{End, Exchange};
pub use look_ahead::TOGETHER;
pub use message::{Message, Withdrawn};
pub use pairing::PairedBy;
pub use run::Run;
pub use stats::{Retransmissions, Stats};
pub use tracker::{Config, Tracker};
pub use unlisted::{Sums, Unlisted};
pub use verdict::{PsnStatus, Verdict};
