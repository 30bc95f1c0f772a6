// SPDX-License-Identifier: GPL-2.0-or-later
//! Decode, verify and follow RoCE packets. No I/O, no allocation per packet, no panic on any bytes.
#![forbid(unsafe_code)]

mod bytes;
pub mod cm;
mod decode;
pub mod finding;
pub mod flow;
mod histogram;
pub mod icrc;
pub mod join;
mod memory;
pub mod opcode;
mod packet;
mod series;
mod shape;

pub use decode::{Frame, Kind, Link, Ports, ROCE_PORT, decode, decode_into};
pub use histogram::Histogram;
pub use memory::{Memory, Own, Recalled};
pub use packet::{
    Aeth, AtomicEth, BTH_LEN, Deth, GRH_LEN, ICRC_LEN, Icrc, NAK_NAMES, Net, Packet, Reth,
    Syndrome, UDP_LEN, address, rnr_delay_ns,
};
pub use series::{Interval, Series};
