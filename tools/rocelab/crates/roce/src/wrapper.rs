// SPDX-License-Identifier: GPL-2.0-or-later
//! Link types whose records wrap a frame of another link type: ERF, PPI, NFLOG, PKTAP.

use crate::bytes;
use crate::erf::{Erf, erf};
use crate::link::Link;

/// The frame in a record of a link type that wraps frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapped {
    /// Its link layer.
    pub link: Link,
    /// Where it begins in the record.
    pub offset: usize,
    /// Bytes captured.
    pub len: usize,
    /// Bytes on the wire.
    pub wire_len: u32,
    /// Nanoseconds since 1970, if the wrapper has a time.
    pub time_ns: Option<i64>,
}

/// Finds the frame in a record of `wire_len` bytes, of which `record` was captured. `None` if it ends before
/// or is malformed.
#[must_use]
pub fn unwrapped(link: Link, record: &[u8], wire_len: u32) -> Option<Wrapped> {
    let found = match link {
        Link::Erf => {
            let Erf { link, offset, len, wire_len, time_ns } = erf(record)?;
            Wrapped { link, offset, len, wire_len, time_ns: Some(time_ns) }
        }
        Link::Ppi => ppi(record, wire_len)?,
        Link::Nflog => nflog(record, wire_len)?,
        Link::Pktap => pktap(record, wire_len)?,
        _ => return None,
    };
    // one level is enough, and keeps hostile records cheap
    let link = if found.link.wraps() { Link::Other(found.link.number()) } else { found.link };
    Some(Wrapped { link, ..found })
}

/// The rest of a record from `offset` on, as a frame.
fn rest(link: Link, record: &[u8], wire_len: u32, offset: usize) -> Option<Wrapped> {
    let len = record.len().checked_sub(offset)?;
    let wire_len = wire_len.checked_sub(u32::try_from(offset).ok()?)?;
    Some(Wrapped { link, offset, len, wire_len, time_ns: None })
}

fn le16(record: &[u8], at: usize) -> Option<usize> {
    Some(u16::from_le_bytes(bytes::array(record, at)?).into())
}

fn le32(record: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes::array(record, at)?))
}

/// "Per-Packet Information Header Specification", CACE: version, flags, length, link type; little-endian.
fn ppi(record: &[u8], wire_len: u32) -> Option<Wrapped> {
    const MIN_LEN: usize = 8;
    let len = le16(record, 2)?;
    if bytes::u8(record, 0)? != 0 || len < MIN_LEN {
        return None;
    }
    rest(Link::from_number(le32(record, 4)?), record, wire_len, len)
}

/// Apple's pktap_header: length, type of what follows (1: a packet), link type, …; little-endian on all its
/// machines of the last two decades.
fn pktap(record: &[u8], wire_len: u32) -> Option<Wrapped> {
    const MIN_LEN: u32 = 12;
    const PACKET: u32 = 1;
    let len = le32(record, 0)?;
    if len < MIN_LEN || le32(record, 4)? != PACKET {
        return None;
    }
    rest(Link::from_number(le32(record, 8)?), record, wire_len, usize::try_from(len).ok()?)
}

/// Netfilter's log: a family, a version, a resource, then attributes in the byte order of the machine that
/// logged. One of them is the packet.
fn nflog(record: &[u8], wire_len: u32) -> Option<Wrapped> {
    const HEADER: usize = 4;
    const ATTRIBUTE: usize = 4;
    const PAYLOAD: usize = 9;
    const LAST_TYPE: usize = 64;
    const MAX_ATTRIBUTES: usize = 64;
    if bytes::u8(record, 1)? != 0 {
        return None;
    }
    // types are small: in the other byte order they would not be
    let little = le16(record, HEADER + 2)? < LAST_TYPE;
    let number = |at| match little {
        true => le16(record, at),
        false => bytes::u16(record, at).map(usize::from),
    };
    let mut at = HEADER;
    for _ in 0..MAX_ATTRIBUTES {
        let (len, kind) = (number(at)?, number(at + 2)?);
        let payload = len.checked_sub(ATTRIBUTE)?;
        if kind == PAYLOAD {
            let offset = at + ATTRIBUTE;
            let frame = rest(Link::RawIp, record, wire_len, offset)?;
            let wire_len = frame.wire_len.min(u32::try_from(payload).ok()?);
            return Some(Wrapped { len: frame.len.min(payload), wire_len, ..frame });
        }
        at += len.next_multiple_of(4);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; 30] = [7; 30];

    fn found(link: Link, head: &[u8]) -> Option<Wrapped> {
        let record = [head, &FRAME].concat();
        let found = unwrapped(link, &record, record.len() as u32);
        for cut in 0..head.len() {
            assert_eq!(
                unwrapped(link, &record[..cut], record.len() as u32),
                None,
                "{link:?} {cut}"
            );
        }
        found
    }

    fn whole(link: Link, offset: usize) -> Option<Wrapped> {
        Some(Wrapped { link, offset, len: 30, wire_len: 30, time_ns: None })
    }

    #[test]
    fn ppi_says_length_and_link_type() {
        let head = [0, 0, 12, 0, 1, 0, 0, 0, 1, 2, 3, 4];
        assert_eq!(found(Link::Ppi, &head), whole(Link::Ethernet, 12));
        let radio = [0, 0, 8, 0, 105, 0, 0, 0];
        assert_eq!(found(Link::Ppi, &radio), whole(Link::Other(105), 8));
        let in_itself = [0, 0, 8, 0, 192, 0, 0, 0];
        assert_eq!(found(Link::Ppi, &in_itself), whole(Link::Other(192), 8));
        assert_eq!(found(Link::Ppi, &[0, 0, 7, 0, 1, 0, 0, 0]), None);
    }

    #[test]
    fn pktap_says_length_and_link_type() {
        let mut head = [0; 108];
        (head[0], head[4], head[8]) = (108, 1, 12);
        assert_eq!(found(Link::Pktap, &head), whole(Link::RawIp, 108));
        head[4] = 0;
        assert_eq!(found(Link::Pktap, &head), None);
    }

    #[test]
    fn nflog_has_its_packet_in_an_attribute_of_either_byte_order() {
        let little = [2, 0, 0, 1, 5, 0, 10, 0, 9, 0, 0, 0, 34, 0, 9, 0];
        assert_eq!(found(Link::Nflog, &little), whole(Link::RawIp, 16));
        let big = [2, 0, 0, 1, 0, 5, 0, 10, 9, 0, 0, 0, 0, 34, 0, 9];
        assert_eq!(found(Link::Nflog, &big), whole(Link::RawIp, 16));
        // an attribute that ends before it begins would be read for ever
        assert_eq!(found(Link::Nflog, &[2, 0, 0, 1, 0, 0, 1, 0]), None);
    }

    #[test]
    fn others_wrap_nothing() {
        assert_eq!(unwrapped(Link::Ethernet, &FRAME, 30), None);
    }
}
