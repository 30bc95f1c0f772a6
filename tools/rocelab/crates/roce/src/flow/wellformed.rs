// SPDX-License-Identifier: GPL-2.0-or-later
//! Checks of single packets, with little state of their direction.

use super::context::Context;
use super::stats::{MAX_MTU, Stats};
use crate::finding::{At, Repeated, Rule};
use crate::header::ICRC_LEN;
use crate::opcode::{Class, Opcode, Position, Service};
use crate::packet::{Net, Packet};

/// State of a direction for these checks; what each packet needs comes first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Constant {
    pkey: Option<u16>,
    sport: Option<u16>,
    /// MigReq of the last packet, and whether it has changed.
    migreq: (Option<bool>, bool),
    /// The first packet with a MigReq that counts.
    first: At,
    /// Packets with reserved bits, and the bits of the first one.
    pub(super) reserved: Repeated,
    pub(super) reserved_bits: (u8, u8),
    version: Repeated,
    ports: Repeated,
    first_ports: (u16, u16),
}

impl Constant {
    /// Whether [`Self::check`] would report nothing about this message of one packet and change nothing.
    #[inline]
    pub(super) fn agrees(&self, packet: &Packet, stats: &Stats) -> bool {
        self.pkey == Some(packet.pkey)
            && self.sport == Some(packet.sport)
            && self.migreq.0 == Some(packet.migreq())
            && packet.tver() == 0
            && (packet.resv8a & 0x3f) | (packet.apsn & 0x7f) == 0
            && !packet.bad_length
            && (packet.payload_len + packet.pad()) % 4 == 0
            && packet.payload_len <= mtu_or_max(stats)
    }

    #[inline]
    pub(super) fn check(
        &mut self,
        packet: &Packet,
        op: &'static Opcode,
        at: At,
        stats: &mut Stats,
        context: &mut Context<'_>,
    ) {
        if self.pkey != Some(packet.pkey) || self.sport != Some(packet.sport) {
            self.changed(packet, at, context);
        }
        if self.migreq.0 != Some(packet.migreq()) {
            self.note_migreq(packet.migreq(), op, at);
        }
        if packet.tver() != 0 {
            self.version.note(at, 1);
        }
        let bits = (packet.resv8a & 0x3f, packet.apsn & 0x7f);
        if bits != (0, 0) {
            if self.reserved.count == 0 {
                self.reserved_bits = bits;
            }
            self.reserved.note(at, 1);
        }
        if packet.bad_length {
            context.find(Rule::Length, at, false, || length(packet, op));
            return;
        }
        if (packet.payload_len + packet.pad()) % 4 != 0 {
            pad(packet, at, context);
        }
        mtu(packet, op, at, stats, context);
    }

    #[cold]
    fn changed(&mut self, packet: &Packet, at: At, context: &mut Context<'_>) {
        if let Some(before) = self.pkey.replace(packet.pkey).filter(|&pkey| pkey != packet.pkey) {
            context.find(Rule::PkeyChange, at, false, || {
                format!("the P_Key changed from {before:#06x} to {:#06x}", packet.pkey)
            });
        }
        if packet.pkey & 0x7fff == 0 {
            context.find(Rule::Pkey, at, false, || format!("invalid P_Key {:#06x}", packet.pkey));
        }
        if let Some(before) = self.sport.replace(packet.sport).filter(|&port| port != packet.sport)
        {
            if self.ports.count == 0 {
                self.first_ports = (before, packet.sport);
            }
            self.ports.note(at, 1);
        }
    }

    /// Only connections migrate.
    #[cold]
    fn note_migreq(&mut self, migreq: bool, op: &Opcode, at: At) {
        if !matches!(op.service(), Service::Rc | Service::Xrc | Service::Uc) {
            return;
        }
        match self.migreq.0.replace(migreq) {
            None => self.first = at,
            Some(_) => self.migreq.1 = true,
        }
    }

    /// The MigReq of all packets, and the first one.
    pub(super) fn migreq(&self) -> Option<(bool, At)> {
        self.migreq.0.filter(|_| !self.migreq.1).map(|migreq| (migreq, self.first))
    }

    /// Merges the findings of the other direction, so that the connection is reported once.
    pub(super) fn join(&mut self, other: &mut Self) {
        let theirs = std::mem::take(&mut other.ports);
        if self.ports.count == 0 {
            self.first_ports = other.first_ports;
        }
        self.ports.note(theirs.first, theirs.count);
    }

    /// Reports what recurred, once per direction.
    pub(super) fn finish(&self, context: &mut Context<'_>) {
        context.find_repeated(Rule::BthVersion, self.version, false, || {
            "the transport header version is not 0, the only one defined".to_owned()
        });
        let (before, port) = self.first_ports;
        context.find_repeated(Rule::UdpSourcePort, self.ports, false, || match self.ports.count {
            1 => format!("the UDP source port changed from {before} to {port}"),
            count => {
                format!("the UDP source port changed {count} times, first from {before} to {port}")
            }
        });
    }
}

fn pad(packet: &Packet, at: At, context: &mut Context<'_>) {
    context.find(Rule::Pad, at, false, || {
        format!(
            "payload of {} bytes plus pad of {} is not a multiple of 4",
            packet.payload_len,
            packet.pad()
        )
    });
}

#[inline]
fn mtu(packet: &Packet, op: &'static Opcode, at: At, stats: &mut Stats, context: &mut Context<'_>) {
    if !op.is_data() {
        return;
    }
    let bytes = packet.payload_len;
    stats.correct_pmtu(bytes);
    let wrong = match op.position {
        Position::First | Position::Middle => {
            let open = stats.pmtu == 0 || stats.pmtu_guessed;
            if open && bytes.is_power_of_two() && (256..=MAX_MTU).contains(&bytes) {
                stats.pmtu = bytes;
                stats.pmtu_guessed = false;
            }
            bytes != stats.pmtu
        }
        Position::Last => bytes == 0 || bytes > mtu_or_max(stats),
        Position::Only => bytes > mtu_or_max(stats),
    };
    if wrong {
        let pmtu = stats.pmtu;
        context.find(Rule::Mtu, at, false, || {
            let why = match pmtu {
                0 => format!("{bytes} is no path MTU, and none is known"),
                _ => format!("the path MTU is {pmtu}"),
            };
            format!("{} carries {bytes} bytes; {why}", op.name)
        });
    }
}

#[inline]
fn mtu_or_max(stats: &Stats) -> u32 {
    if stats.pmtu == 0 { MAX_MTU } else { stats.pmtu }
}

/// A congestion notification (annex A17.9.3): BECN set, 16 reserved bytes of zero.
pub(super) fn cnp(packet: &Packet, frame: &[u8], at: At, context: &mut Context<'_>) {
    let reserved = packet.header(frame, crate::header::Header::Cnp);
    let zero = reserved.is_none_or(|bytes| bytes.iter().all(|&byte| byte == 0));
    let is_cnp = packet.op().is_some_and(|op| op.class == Class::Congestion);
    let wrong = !packet.becn() || !zero || packet.bad_length || packet.net == Net::V1;
    if is_cnp && wrong {
        context.find(Rule::CnpFormat, at, false, || {
            "a CNP must set BECN, have 16 zero bytes after the BTH, and be RoCE v2".to_owned()
        });
    }
}

/// What the lengths are, so that one sees which of them does not fit.
#[cold]
fn length(packet: &Packet, op: &Opcode) -> String {
    let headers = usize::from(packet.bth_off) + usize::from(op.header_len);
    let (pad, wire, payload) = (packet.pad(), packet.wire_len, packet.payload_len);
    let end = packet.icrc_off() + ICRC_LEN;
    let hint = if pad > 0 { " (or is the pad count wrong?)" } else { "" };
    format!(
        "network header, UDP, BTH and frame lengths do not match: {headers} bytes of headers, {payload} of \
         payload, {pad} of pad{hint} and {ICRC_LEN} of ICRC end at byte {end}; the frame has {wire}"
    )
}
