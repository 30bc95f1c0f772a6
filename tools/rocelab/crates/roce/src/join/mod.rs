// SPDX-License-Identifier: GPL-2.0-or-later
//! Matches the frames of a capture between two nodes with the records of the drivers at both ends.
//!
//! A packet's key is its addresses, destination QP, PSN and opcode, and for UD the source QP. Packets
//! with the same key differ in their bytes: the ICRC covers the IPv4 identification, which changes
//! with each retransmission but not when the network duplicates a packet. Packets with equal bytes
//! are matched in order if all places saw the same number of them. Otherwise none is matched, and
//! the row is marked ambiguous.

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
