// SPDX-License-Identifier: GPL-2.0-or-later
//! Decodes, verifies and follows RoCE packets. Does no I/O, allocates nothing per packet, and does
//! not panic on any input.
#![forbid(unsafe_code)]

mod bytes;
pub mod cm;
mod decode;
mod erf;
pub mod finding;
pub mod flow;
mod fragment;
mod header;
mod header_cache;
mod header_shape;
mod histogram;
pub mod icrc;
mod infiniband;
pub mod join;
mod layer;
mod lid;
mod link;
pub mod opcode;
mod packet;
mod reassembly;
mod segment;
mod series;
mod sflow;
mod sought;
mod tunnel;
mod wrapper;

pub use decode::{Frame, Kind, Ports, ROCE_PORT, decode, decode_into};
pub use erf::erf_time_ns;
pub use header::{BTH_LEN, GRH_LEN, Header, ICRC_LEN, LRH_LEN, UDP_LEN};
pub use header_cache::{HeaderCache, Hit, Varying};
pub use histogram::Histogram;
pub use layer::Layer;
pub use link::{Link, link_type_name};
pub use packet::{
    Address, Aeth, AtomicEth, Deth, Icrc, NAK_NAMES, Net, Packet, Reth, Syndrome, address,
    rnr_delay_ns,
};
pub use reassembly::{FragmentFrame, Reassembly, Whole};
pub use segment::{Segment, Tunnel};
pub use series::{Interval, Series};
pub use sought::holds_roce;
pub use wrapper::{Wrapped, unwrapped};
