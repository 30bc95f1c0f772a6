// SPDX-License-Identifier: GPL-2.0-or-later
//! BTH opcodes: names, services, and the extended headers that follow (IBA volume 1, chapter 9).

use crate::header::{BTH_LEN, Header};

/// The transport service: the upper three bits of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Reliable datagram.
    Rd,
    /// Unreliable datagram.
    Ud,
    /// Congestion notification.
    Cnp,
    /// Extended reliable connection.
    Xrc,
    /// Not defined by the specification, or vendor-specific.
    Other,
}

impl Service {
    /// The service of any opcode byte.
    #[must_use]
    pub const fn of(code: u8) -> Self {
        match code >> 5 {
            0 => Self::Rc,
            1 => Self::Uc,
            2 => Self::Rd,
            3 => Self::Ud,
            4 => Self::Cnp,
            5 => Self::Xrc,
            _ => Self::Other,
        }
    }

    /// The specification's abbreviation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Rd => "RD",
            Self::Ud => "UD",
            Self::Cnp => "CNP",
            Self::Xrc => "XRC",
            Self::Other => "OTHER",
        }
    }

    /// RC or XRC: acknowledged, in order, retransmitted.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        matches!(self, Self::Rc | Self::Xrc)
    }
}

/// The operation of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the specification's")]
pub enum Class {
    Send,
    Write,
    ReadRequest,
    ReadResponse,
    Acknowledge,
    AtomicAcknowledge,
    Atomic,
    Resync,
    Flush,
    AtomicWrite,
    Congestion,
}

/// The position of a packet in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the specification's")]
pub enum Position {
    First,
    Middle,
    Last,
    Only,
}

impl Position {
    /// First or only: the packet starts a message.
    #[must_use]
    pub const fn begins(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// Last or only: the packet ends a message.
    #[must_use]
    pub const fn ends(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

const ABSENT: u8 = 0;

/// One row of the opcode table.
#[derive(Debug)]
pub struct Opcode {
    /// The byte in the BTH.
    pub code: u8,
    /// For example `RC_RDMA_WRITE_ONLY`.
    pub name: &'static str,
    /// Operation.
    pub class: Class,
    /// Position in the message.
    pub position: Position,
    service: Service,
    /// Offset of each header from the start of the BTH; 0 where absent.
    offsets: [u8; Header::ALL.len()],
    /// BTH and extended headers, bytes.
    pub header_len: u8,
}

impl Opcode {
    const fn new(
        code: u8,
        name: &'static str,
        class: Class,
        position: Position,
        headers: &[Header],
    ) -> Self {
        let mut offsets = [ABSENT; Header::ALL.len()];
        let mut at = BTH_LEN as u8;
        let mut i = 0;
        while i < headers.len() {
            offsets[headers[i] as usize] = at;
            at += headers[i].size() as u8;
            i += 1;
        }
        Self { code, name, class, position, service: Service::of(code), offsets, header_len: at }
    }

    /// Its transport service.
    #[must_use]
    #[inline]
    pub const fn service(&self) -> Service {
        self.service
    }

    /// Offset of `header` from the start of the BTH, if this opcode carries it.
    #[must_use]
    pub const fn offset(&self, header: Header) -> Option<usize> {
        match self.offsets[header as usize] {
            ABSENT => None,
            at => Some(at as usize),
        }
    }

    /// Whether it carries message bytes.
    #[must_use]
    pub const fn is_data(&self) -> bool {
        matches!(self.class, Class::Send | Class::Write | Class::ReadResponse | Class::AtomicWrite)
    }

    /// Whether a responder sends it, with a PSN of the requester.
    #[must_use]
    pub const fn is_response(&self) -> bool {
        matches!(self.class, Class::ReadResponse | Class::Acknowledge | Class::AtomicAcknowledge)
    }

    /// Whether only a response with its own PSN completes it: a READ or an atomic.
    #[must_use]
    pub const fn needs_answer(&self) -> bool {
        matches!(self.class, Class::ReadRequest | Class::Atomic)
    }

    /// Index in [`all`] and of counters per opcode.
    #[must_use]
    pub fn index(&self) -> usize {
        usize::from(INDEX[usize::from(self.code)])
    }
}

include!(concat!(env!("OUT_DIR"), "/opcodes.rs"));

const UNKNOWN: u8 = u8::MAX;

static INDEX: [u8; 256] = {
    let mut index = [UNKNOWN; 256];
    let mut i = 0;
    while i < TABLE.len() {
        index[TABLE[i].code as usize] = i as u8;
        i += 1;
    }
    index
};

/// The row of a BTH opcode byte; `None` if the specification does not define it.
#[must_use]
#[inline]
pub fn lookup(code: u8) -> Option<&'static Opcode> {
    TABLE.get(usize::from(INDEX[usize::from(code)]))
}

/// Every opcode of the specification, by code.
#[must_use]
pub fn all() -> &'static [Opcode] {
    TABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_follow_each_other() {
        let offset = |code, header| lookup(code).and_then(|op| op.offset(header));
        assert_eq!(offset(0x0b, Header::Reth), Some(12));
        assert_eq!(offset(0x0b, Header::Immdt), Some(28));
        assert_eq!(offset(0x4b, Header::Reth), Some(24), "RD: RDETH and DETH come first");
        assert_eq!(offset(0x12, Header::Atomicacketh), Some(16));
        assert_eq!(offset(0x04, Header::Reth), None);
        assert_eq!(lookup(0xab).map(|op| op.header_len), Some(12 + 4 + 16 + 4));
    }

    #[test]
    fn unknown_stays_unknown() {
        assert!(lookup(0x18).is_none());
        assert!(lookup(0xff).is_none());
        assert_eq!(all().len(), 86);
    }
}
