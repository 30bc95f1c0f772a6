// SPDX-License-Identifier: GPL-2.0-or-later
//! The first Ethernet header of a frame: what the link at the capture point saw.

/// Ethertypes of VLAN tags (802.1Q, 802.1ad, and 0x9100 of older devices).
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const MAX_TAGS: usize = 8;

/// A MAC address.
pub type Mac = [u8; 6];

/// An Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ethernet {
    pub(crate) destination: Mac,
    pub(crate) source: Mac,
    /// Priority of the first VLAN tag.
    pub(crate) pcp: Option<u8>,
    /// Where the payload starts.
    pub(crate) payload: usize,
}

impl Ethernet {
    /// Reads the header; `None` if it was not captured.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        let mut at = 12;
        let mut pcp = None;
        for _ in 0..MAX_TAGS {
            if !VLAN.contains(&u16_at(frame, at)?) {
                break;
            }
            pcp = pcp.or(Some((u16_at(frame, at + 2)? >> 13) as u8));
            at += 4;
        }
        Some(Self {
            destination: *frame.first_chunk()?,
            source: *frame.get(6..)?.first_chunk()?,
            pcp,
            payload: at + 2,
        })
    }
}

pub(crate) fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?))
}

/// `00:02:c9:12:34:56`
#[must_use]
pub fn mac_text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_precede_the_payload() {
        let macs = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let tagged = [&macs[..], &[0x88, 0xa8, 0x60, 1, 0x81, 0, 0xe0, 2, 8, 0]].concat();
        let header = Ethernet::of(&tagged).unwrap();
        assert_eq!((header.pcp, header.payload), (Some(3), 22));
        assert_eq!(mac_text(header.source), "07:08:09:0a:0b:0c");
        assert_eq!(Ethernet::of(&tagged[..20]), None);
        assert_eq!(Ethernet::of(&[&macs[..], &[8, 0]].concat()).unwrap().pcp, None);
    }
}
