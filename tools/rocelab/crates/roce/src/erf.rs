// SPDX-License-Identifier: GPL-2.0-or-later
//! Endace's Extensible Record Format, in which ibdump and network cards of Endace capture
//! (`LINKTYPE_ERF`; "ERF types reference guide", Endace).

use crate::bytes;
use crate::link::Link;

const HEADER: usize = 16;
const EXTENSION: usize = 8;
/// This bit of a type says that an extension header follows.
const MORE: u8 = 0x80;
/// Ethernet records have an offset byte and a pad byte before the frame.
const ETHERNET_PAD: usize = 2;
const MAX_EXTENSIONS: usize = 16;

/// The frame in an ERF record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Erf {
    /// Its link layer.
    pub(crate) link: Link,
    /// Where it begins in the record.
    pub(crate) offset: usize,
    /// Bytes captured.
    pub(crate) len: usize,
    /// Bytes on the wire, with the FCS of Ethernet and the VCRC of InfiniBand.
    pub(crate) wire_len: u32,
    /// Nanoseconds since 1970.
    pub(crate) time_ns: i64,
}

/// Finds the frame in an ERF record, of which `record` was captured. `None` if it ends before.
#[must_use]
pub(crate) fn erf(record: &[u8]) -> Option<Erf> {
    let header: [u8; HEADER] = bytes::array(record, 0)?;
    let time_ns = erf_time_ns(record)?;
    let mut offset = HEADER;
    let mut more = header[8] & MORE != 0;
    for _ in 0..MAX_EXTENSIONS {
        if !more {
            break;
        }
        more = bytes::u8(record, offset)? & MORE != 0;
        offset += EXTENSION;
    }
    let link = match header[8] & !MORE {
        // Ethernet; with a colour, from several ports, with a hash
        2 | 11 | 16 | 20 => {
            offset += ETHERNET_PAD;
            Link::Ethernet
        }
        21 => Link::Infiniband,
        22 | 23 => Link::RawIp,
        _ => Link::Other(Link::Erf.number()),
    };
    let wire_len = u16::from_be_bytes([header[14], header[15]]);
    // the record may be padded behind the frame
    let len = record.len().checked_sub(offset)?.min(usize::from(wire_len));
    Some(Erf { link, offset, len, wire_len: wire_len.into(), time_ns })
}

/// The time of an ERF record, ns since 1970: 32 bits of seconds and 32 bits of their fraction, least significant
/// byte first.
#[must_use]
pub fn erf_time_ns(record: &[u8]) -> Option<i64> {
    let stamp = u64::from_le_bytes(bytes::array(record, 0)?);
    let nanoseconds = ((stamp & 0xffff_ffff) * 1_000_000_000) >> 32;
    i64::try_from((stamp >> 32) * 1_000_000_000 + nanoseconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, extensions: &[u8], frame: &[u8]) -> Vec<u8> {
        let mut record = 0x0000_0003_8000_0000_u64.to_le_bytes().to_vec();
        let len = (HEADER + extensions.len() + frame.len()) as u16;
        record.extend([kind, 4, (len >> 8) as u8, len as u8, 0, 0, 0, frame.len() as u8]);
        record.extend(extensions);
        record.extend(frame);
        record
    }

    #[test]
    fn infiniband() {
        let found = erf(&record(21, &[], &[7; 30])).unwrap();
        assert_eq!((found.link, found.offset, found.len), (Link::Infiniband, 16, 30));
        assert_eq!((found.wire_len, found.time_ns), (30, 3_500_000_000));
    }

    #[test]
    fn extension_headers() {
        let extensions = [[0x81, 0, 0, 0, 0, 0, 0, 0], [0x01, 0, 0, 0, 0, 0, 0, 0]].concat();
        let found = erf(&record(21 | MORE, &extensions, &[7; 30])).unwrap();
        assert_eq!((found.link, found.offset, found.len), (Link::Infiniband, 32, 30));
        assert_eq!(erf(&record(21 | MORE, &extensions[..8], &[])), None);
    }

    #[test]
    fn ethernet_and_padding() {
        let mut bytes = record(2, &[0, 0], &[7; 60]);
        bytes.extend([0; 6]);
        let found = erf(&bytes).unwrap();
        assert_eq!((found.link, found.offset, found.len), (Link::Ethernet, 18, 60));
        assert_eq!(erf(&bytes[..10]), None);
        let cut = erf(&bytes[..40]).unwrap();
        assert_eq!((cut.len, cut.wire_len), (22, 60));
    }
}
