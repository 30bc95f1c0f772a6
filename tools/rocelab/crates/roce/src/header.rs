// SPDX-License-Identifier: GPL-2.0-or-later
//! Header lengths, and the extended headers of the BTH (IBA volume 1, chapter 9).

/// Base Transport Header, bytes.
pub const BTH_LEN: usize = 12;
/// Invariant CRC, bytes.
pub const ICRC_LEN: usize = 4;
/// Global Route Header, bytes.
pub const GRH_LEN: usize = 40;
/// Local Route Header of native InfiniBand, bytes.
pub const LRH_LEN: usize = 8;
/// UDP header, bytes.
pub const UDP_LEN: usize = 8;

/// An extended header; the order is that on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the specification's")]
pub enum Header {
    Rdeth,
    Deth,
    Xrceth,
    Feth,
    Reth,
    Atomiceth,
    Aeth,
    Atomicacketh,
    Immdt,
    Ieth,
    /// The 16 reserved bytes of a CNP.
    Cnp,
}

impl Header {
    /// All headers, in wire order.
    pub const ALL: [Self; 11] = [
        Self::Rdeth,
        Self::Deth,
        Self::Xrceth,
        Self::Feth,
        Self::Reth,
        Self::Atomiceth,
        Self::Aeth,
        Self::Atomicacketh,
        Self::Immdt,
        Self::Ieth,
        Self::Cnp,
    ];

    /// Length in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Rdeth | Self::Xrceth | Self::Feth | Self::Aeth | Self::Immdt | Self::Ieth => 4,
            Self::Deth | Self::Atomicacketh => 8,
            Self::Reth | Self::Cnp => 16,
            Self::Atomiceth => 28,
        }
    }

    /// The key under which `overhead.by_header` counts it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Rdeth => "rdeth",
            Self::Deth => "deth",
            Self::Xrceth => "xrceth",
            Self::Feth => "feth",
            Self::Reth => "reth",
            Self::Atomiceth => "atomiceth",
            Self::Aeth => "aeth",
            Self::Atomicacketh => "atomicacketh",
            Self::Immdt => "immdt",
            Self::Ieth => "ieth",
            Self::Cnp => "cnp_reserved",
        }
    }
}
