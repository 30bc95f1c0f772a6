// SPDX-License-Identifier: GPL-2.0-or-later
//! Match what a capture between the nodes saw to what the driver at either end recorded.
//!
//! A packet is known by its addresses, destination QP, PSN and opcode (UD: also the source QP). Where
//! several have all of these in common, their bytes tell them apart: the ICRC covers the IPv4
//! identification, which a retransmission draws anew and a copy made by the network keeps. Equal
//! bytes are matched one by one in their order as long as every place saw equally many; where that
//! does not decide either, nothing is matched, and the row says so.

mod cause;
mod comment;
mod joined_row;
mod joiner;
mod packet_key;
mod sightings;
mod stage_times;

pub use cause::{Received, Sent};
pub use comment::{Comment, Dir, Reject, escape};
pub use joined_row::{Record, Row, WireFrame};
pub use joiner::{Config, Joiner, Place, Tally, Trace};
pub use packet_key::{Key, Print};
pub use stage_times::{RX_STAGES, StageTimes, TX_STAGES};
