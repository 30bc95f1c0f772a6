// SPDX-License-Identifier: GPL-2.0-or-later
//! What the decoder does not look into: packets behind it may be RoCE.

use crate::link::link_type_name;

/// A layer that is not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// A link type, by its number.
    Link(u16),
    /// An Ethertype.
    Ethertype(u16),
    /// An IP protocol, or IPv6 next header.
    Protocol(u8),
    /// A UDP port of another RDMA transport.
    UdpPort(u16),
    /// Tunnels in more tunnels than are followed.
    Depth,
}

impl Layer {
    /// The kind of its number: `link_type`, `ethertype`, `ip_protocol`, `udp_port`; `depth` has none.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Link(_) => "link_type",
            Self::Ethertype(_) => "ethertype",
            Self::Protocol(_) => "ip_protocol",
            Self::UdpPort(_) => "udp_port",
            Self::Depth => "depth",
        }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> Option<u16> {
        match self {
            Self::Link(number) | Self::Ethertype(number) | Self::UdpPort(number) => Some(number),
            Self::Protocol(number) => Some(number as u16),
            Self::Depth => None,
        }
    }

    /// The registered name of its number, if it has one that is known here.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Link(number) => link_type_name(number),
            Self::Ethertype(number) => name_of(&ETHERTYPES, number),
            Self::Protocol(number) => name_of(&PROTOCOLS, number),
            Self::UdpPort(number) => name_of(&UDP_PORTS, number),
            Self::Depth => None,
        }
    }

    /// An Ethertype that has no header here; `None` if it carries no other packets.
    pub(crate) fn of_ethertype(ethertype: u16) -> Option<Self> {
        (!PLAIN_ETHERTYPES.contains(&ethertype)).then_some(Self::Ethertype(ethertype))
    }

    /// The same for an IP protocol.
    pub(crate) fn of_protocol(protocol: u8) -> Option<Self> {
        (!PLAIN_PROTOCOLS.contains(&protocol)).then_some(Self::Protocol(protocol))
    }

    /// The same for a UDP port that is neither RoCE's nor a tunnel's; `None` for all but a few.
    pub(crate) fn of_udp_port(port: u16) -> Option<Self> {
        name_of(&UDP_PORTS, port).map(|_| Self::UdpPort(port))
    }
}

fn name_of<N: Copy + PartialEq>(names: &[(N, &'static str)], number: N) -> Option<&'static str> {
    names.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// What carries no other packets: loopback, ARP, wake-on-LAN, RARP, IPX, MAC control, slow protocols, PPPoE
/// discovery, MRP, EAPOL, PROFINET, HomePlug, LLDP, AVTP, MVRP and MMRP, PTP, NC-SI, CFM, FCoE and FIP, …
const PLAIN_ETHERTYPES: [u16; 24] = [
    0x0806, 0x0842, 0x8035, 0x8137, 0x8808, 0x8809, 0x8863, 0x887b, 0x888e, 0x8892, 0x88a4, 0x88cc,
    0x88cd, 0x88e1, 0x88e3, 0x88f5, 0x88f6, 0x88f7, 0x88f8, 0x8902, 0x8906, 0x8914, 0x9000, 0x22f0,
];
/// ICMP, IGMP, TCP, EGP, IGP, UDP, DCCP, RSVP, ICMPv6, none, EIGRP, OSPF, PIM, VRRP, IS-IS, SCTP, UDP-Lite.
const PLAIN_PROTOCOLS: [u8; 17] =
    [1, 2, 6, 8, 9, 17, 33, 46, 58, 59, 88, 89, 103, 112, 124, 132, 136];

const ETHERTYPES: [(u16, &str); 5] = [
    (0x880b, "PPP"),
    (0x88b7, "OUI extended"),
    (0x88e5, "MACsec, encrypted"),
    (0x891d, "TTEthernet"),
    (0x893f, "E-Tag, 802.1BR"),
];
const PROTOCOLS: [(u8, &str); 7] = [
    (44, "fragment"),
    (50, "ESP, encrypted"),
    (55, "MOBILE"),
    (94, "IPIP of KA9Q"),
    (98, "ENCAP"),
    (108, "IPComp"),
    (115, "L2TP"),
];
/// What RDMA moves to; its packets are no RoCE, and are counted.
const UDP_PORTS: [(u16, &str); 1] = [(4793, "Ultra Ethernet")];
