// SPDX-License-Identifier: GPL-2.0-or-later
//! Link layers of captures, by their numbers (tcpdump.org/linktypes).

/// Link layer of a captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// `LINKTYPE_ETHERNET`.
    Ethernet,
    /// `LINKTYPE_LINUX_SLL`.
    LinuxSll,
    /// `LINKTYPE_LINUX_SLL2`.
    LinuxSll2,
    /// `LINKTYPE_RAW`, `_IPV4` and `_IPV6`: an IP header.
    RawIp,
    /// `LINKTYPE_NULL` and `_LOOP`: an address family and an IP header.
    Null,
    /// `LINKTYPE_IPNET`: Solaris' header and an IP header.
    Ipnet,
    /// `LINKTYPE_INFINIBAND`: a Local Route Header.
    Infiniband,
    /// `LINKTYPE_ERF`: see [`crate::unwrapped`], also for the next three.
    Erf,
    /// `LINKTYPE_PPI`.
    Ppi,
    /// `LINKTYPE_NFLOG`.
    Nflog,
    /// `LINKTYPE_PKTAP`.
    Pktap,
    /// The number of one that is not read.
    Other(u16),
}

impl Link {
    /// The link layer with this number in a pcap or pcapng header.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            0 | 108 => Self::Null,
            1 => Self::Ethernet,
            // 12 and 14 are DLT_RAW on some systems
            12 | 14 | 101 | 228 | 229 => Self::RawIp,
            113 => Self::LinuxSll,
            192 => Self::Ppi,
            197 => Self::Erf,
            226 => Self::Ipnet,
            239 => Self::Nflog,
            247 => Self::Infiniband,
            258 => Self::Pktap,
            276 => Self::LinuxSll2,
            // no link type has a number of more than 16 bits
            0x1_0000.. => Self::Other(u16::MAX),
            _ => Self::Other(number as u16),
        }
    }

    /// A number that [`Self::from_number`] takes for this link layer.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Null => 0,
            Self::Ethernet => 1,
            Self::RawIp => 101,
            Self::LinuxSll => 113,
            Self::Ppi => 192,
            Self::Erf => 197,
            Self::Ipnet => 226,
            Self::Nflog => 239,
            Self::Infiniband => 247,
            Self::Pktap => 258,
            Self::LinuxSll2 => 276,
            Self::Other(number) => number,
        }
    }

    /// Whether its records wrap frames of other link layers.
    #[must_use]
    #[inline]
    pub const fn wraps(self) -> bool {
        matches!(self, Self::Erf | Self::Ppi | Self::Nflog | Self::Pktap)
    }
}

/// The registered name of a link type that is not read, without `LINKTYPE_`.
#[must_use]
pub fn link_type_name(number: u16) -> Option<&'static str> {
    if (147..=162).contains(&number) {
        const USER: [&str; 16] = [
            "USER0", "USER1", "USER2", "USER3", "USER4", "USER5", "USER6", "USER7", "USER8",
            "USER9", "USER10", "USER11", "USER12", "USER13", "USER14", "USER15",
        ];
        return USER.get(usize::from(number - 147)).copied();
    }
    NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

const NAMES: [(u16, &str); 52] = [
    (3, "AX25"),
    (6, "IEEE802_5"),
    (7, "ARCNET_BSD"),
    (8, "SLIP"),
    (9, "PPP"),
    (10, "FDDI"),
    (50, "PPP_HDLC"),
    (51, "PPP_ETHER"),
    (100, "ATM_RFC1483"),
    (104, "C_HDLC"),
    (105, "IEEE802_11"),
    (107, "FRELAY"),
    (109, "ENC"),
    (114, "LTALK"),
    (117, "PFLOG"),
    (119, "IEEE802_11_PRISM"),
    (122, "IP_OVER_FC"),
    (123, "SUNATM"),
    (127, "IEEE802_11_RADIOTAP"),
    (138, "APPLE_IP_OVER_IEEE1394"),
    (163, "IEEE802_11_AVS"),
    (165, "BACNET_MS_TP"),
    (166, "PPP_PPPD"),
    (177, "LINUX_LAPD"),
    (187, "BLUETOOTH_HCI_H4"),
    (189, "USB_LINUX"),
    (192, "PPI"),
    (195, "IEEE802_15_4_WITHFCS"),
    (196, "SITA"),
    (197, "ERF"),
    (201, "BLUETOOTH_HCI_H4_WITH_PHDR"),
    (204, "PPP_WITH_DIR"),
    (209, "I2C_LINUX"),
    (220, "USB_LINUX_MMAPPED"),
    (224, "FC_2"),
    (225, "FC_2_WITH_FRAME_DELIMS"),
    (227, "CAN_SOCKETCAN"),
    (230, "IEEE802_15_4_NOFCS"),
    (231, "DBUS"),
    (239, "NFLOG"),
    (240, "NETANALYZER"),
    (241, "NETANALYZER_TRANSPARENT"),
    (242, "IPOIB"),
    (249, "USBPCAP"),
    (252, "WIRESHARK_UPPER_PDU"),
    (253, "NETLINK"),
    (258, "PKTAP"),
    (264, "VPP_DISPATCH"),
    (266, "USB_DARWIN"),
    (271, "VSOCK"),
    (274, "ETHERNET_MPACKET"),
    (292, "ETW"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in 0..=400 {
            let link = Link::from_number(number);
            assert_eq!(Link::from_number(link.number().into()), link);
        }
        assert_eq!(Link::from_number(0x3ff_ffff), Link::Other(u16::MAX));
    }

    #[test]
    fn names() {
        assert_eq!(link_type_name(147), Some("USER0"));
        assert_eq!(link_type_name(105), Some("IEEE802_11"));
        assert_eq!(link_type_name(9999), None);
        assert!(NAMES.is_sorted());
    }
}
