// SPDX-License-Identifier: GPL-2.0-or-later
//! Frames known again by their headers: most differ from one before in little but their PSN.

use crate::decode::{Link, PLAIN};
use crate::icrc::Common;
use crate::opcode::Header;
use crate::packet::{BTH_LEN, ICRC_LEN, Icrc, Net, Packet};

/// All of a plain frame's head that decides how it is decoded: without MAC addresses, IPv4
/// identification, checksums, AckReq and PSN. In as few pieces as can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// P_Key, QP and opcode.
    bth: u64,
    addresses: u64,
    /// The end of the addresses again, UDP ports and length.
    udp: u64,
    /// Ethertype, IPv4 version, header length and type of service.
    network: u32,
    /// Fragment, TTL, protocol.
    fragment: u32,
    ip_length: u16,
    /// Behind AckReq.
    reserved: u8,
    captured: usize,
    wire_len: u32,
}

impl Shape {
    #[inline]
    fn of(head: &[u8; PLAIN], captured: usize, wire_len: u32) -> Self {
        Self {
            bth: u64::from_ne_bytes(part::<42, 8>(head)),
            addresses: u64::from_ne_bytes(part::<26, 8>(head)),
            udp: u64::from_ne_bytes(part::<32, 8>(head)),
            network: u32::from_ne_bytes(part::<12, 4>(head)),
            fragment: u32::from_ne_bytes(part::<20, 4>(head)),
            ip_length: u16::from_ne_bytes(part::<16, 2>(head)),
            reserved: head[50] & 0x7f,
            captured,
            wire_len,
        }
    }

    /// Where frames of this shape are kept.
    #[inline]
    const fn place(&self) -> usize {
        let mixed = self.bth ^ self.addresses.rotate_left(32) ^ (self.ip_length as u64) << 8;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % KNOWN
    }
}

#[inline]
fn part<const AT: usize, const LEN: usize>(head: &[u8; PLAIN]) -> [u8; LEN] {
    std::array::from_fn(|byte| head[AT + byte])
}

/// What is a packet's own among those with the same headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Its PSN.
    pub psn: u32,
    /// BTH byte 8: AckReq, seven reserved bits.
    pub apsn: u8,
    /// The ICRC that it carries; 0 if that was not captured.
    pub icrc: u32,
}

/// A plain frame that was decoded: what the next one like it need not be asked.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    shape: Shape,
    /// A RETH's DMA length and where it is; without a RETH, four bytes of the head.
    announced: [u8; 4],
    announced_at: u32,
    /// Where the ICRC is, if it was captured.
    icrc_at: Option<u32>,
    common: Common,
    /// The caller's number of the decoded packet.
    pub index: u32,
}

impl Known {
    /// What a frame like this one has of its own; its ICRC is verified if `check` says so.
    #[must_use]
    #[inline]
    pub fn look(&self, frame: &[u8], check: bool) -> (Own, Icrc) {
        let Some(head) = frame.first_chunk::<PLAIN>() else { return Default::default() };
        let [apsn, a, b, c] = [50, 51, 52, 53].map(|at| head[at]);
        let own = Own { psn: u32::from_be_bytes([0, a, b, c]), apsn, icrc: 0 };
        let Some(at) = self.icrc_at else { return (own, Icrc::Unchecked) };
        let end = at as usize;
        let (Some(covered), Some(icrc)) = (frame.get(PLAIN..end), frame.get(end..end + ICRC_LEN))
        else {
            return (own, Icrc::Unchecked);
        };
        let icrc = icrc.first_chunk().copied().map_or(0, u32::from_le_bytes);
        let verdict = match check {
            false => Icrc::Unchecked,
            true if self.common.expected(head, covered) == icrc => Icrc::Ok,
            true => Icrc::Bad,
        };
        (Own { icrc, ..own }, verdict)
    }
}

const KNOWN: usize = 256;

/// Knows plain frames again that differ from one before only in [`Own`], IPv4 identification,
/// checksums, MAC addresses and what is behind the BTH, but for a RETH's DMA length: what else
/// [`crate::decode_into`] would say is the same.
#[derive(Debug)]
pub struct Memory(Box<[Option<Known>; KNOWN]>);

impl Default for Memory {
    fn default() -> Self {
        Self(Box::new([None; KNOWN]))
    }
}

impl Memory {
    /// The frame before with these headers, if it is still known.
    #[must_use]
    #[inline]
    pub fn recall(&self, link: Link, frame: &[u8], wire_len: u32) -> Option<&Known> {
        let shape = Shape::of(frame.first_chunk()?, frame.len(), wire_len);
        let known = self.0[shape.place()].as_ref()?;
        let at = known.announced_at as usize;
        let same = link == Link::Ethernet
            && known.shape == shape
            && frame.get(at..at + 4) == Some(&known.announced);
        same.then_some(known)
    }

    /// Remember that `frame` was decoded as `packet`, which is the caller's number `index`.
    #[inline]
    pub fn keep(&mut self, link: Link, frame: &[u8], packet: &Packet, index: u32) {
        let plain = link == Link::Ethernet
            && packet.net == Net::V2Ipv4
            && packet.l3_off == 14
            && usize::from(packet.bth_off) + BTH_LEN == PLAIN;
        if plain {
            self.keep_plain(frame, packet, index);
        }
    }

    fn keep_plain(&mut self, frame: &[u8], packet: &Packet, index: u32) -> Option<()> {
        let head = frame.first_chunk()?;
        let shape = Shape::of(head, frame.len(), packet.wire_len);
        let reth = packet.op().and_then(|op| op.offset(Header::Reth));
        let announced_at = reth.map_or(12, |offset| usize::from(packet.bth_off) + offset + 12);
        self.0[shape.place()] = Some(Known {
            shape,
            announced: *frame.get(announced_at..)?.first_chunk()?,
            announced_at: announced_at as u32,
            icrc_at: packet.complete.then(|| packet.icrc_off() as u32),
            common: Common::new(head),
            index,
        });
        Some(())
    }

    /// Begin anew.
    pub fn forget(&mut self) {
        // not by a new array, which would be copied whole
        for known in self.0.iter_mut() {
            *known = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Frame, Ports, decode};
    use crate::icrc;

    const WRITE_ONLY: u8 = 0x0a;
    const SEND_ONLY: u8 = 0x04;
    const ACKNOWLEDGE: u8 = 0x11;

    /// Bytes that nothing but the seed decides (a linear congruence).
    struct Noise(u64);

    impl Noise {
        fn byte(&mut self) -> u8 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 56) as u8
        }
    }

    /// A plain frame with `behind` bytes between BTH and ICRC; all that is free is noise.
    fn frame(opcode: u8, behind: usize, noise: &mut Noise) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..PLAIN + behind + ICRC_LEN).map(|_| noise.byte()).collect();
        let length = |from: usize| ((PLAIN + behind + ICRC_LEN - from) as u16).to_be_bytes();
        frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x02]);
        frame[16..18].copy_from_slice(&length(14));
        frame[20..24].copy_from_slice(&[0x40, 0x00, 64, 17]);
        frame[26..38].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 0x12, 0x12, 0xb7]);
        frame[38..40].copy_from_slice(&length(34));
        frame[42..50].copy_from_slice(&[opcode, 0, 0xff, 0xff, 0, 0, 0, 18]);
        frame[50] &= 0x80;
        if opcode == WRITE_ONLY {
            frame[66..70].copy_from_slice(&(behind as u32 - 16).to_be_bytes());
        }
        seal(&mut frame);
        frame
    }

    fn decoded(frame: &[u8]) -> Packet {
        match decode(Link::Ethernet, frame, frame.len() as u32, &Ports::default()) {
            Frame::Roce(packet) => packet,
            other => panic!("{other:?}"),
        }
    }

    fn seal(frame: &mut [u8]) {
        if let Some(icrc) = icrc::expected(&decoded(frame), frame) {
            let at = frame.len() - ICRC_LEN;
            frame[at..].copy_from_slice(&icrc.to_le_bytes());
        }
    }

    fn memory_of(frame: &[u8]) -> Memory {
        let mut memory = Memory::default();
        memory.keep(Link::Ethernet, frame, &decoded(frame), 7);
        memory
    }

    #[test]
    fn a_frame_like_it_is_known_and_judged_as_when_decoded() {
        let mut noise = Noise(1);
        for (opcode, least) in [(WRITE_ONLY, 16), (SEND_ONLY, 0), (ACKNOWLEDGE, 4)] {
            for behind in (least..300).step_by(4).chain([2064, 4112]) {
                let memory = memory_of(&frame(opcode, behind, &mut noise));
                let mut other = frame(opcode, behind, &mut noise);
                if noise.byte() % 4 == 0 {
                    let at = PLAIN + usize::from(noise.byte()) % (other.len() - PLAIN);
                    // not the announced length
                    other[at] ^= if (66..70).contains(&at) { 0 } else { 1 };
                }
                let packet = decoded(&other);
                let known = memory.recall(Link::Ethernet, &other, other.len() as u32).unwrap();
                let icrc = icrc::found(&packet, &other).unwrap();
                let own = Own { psn: packet.psn, apsn: packet.apsn, icrc };
                assert_eq!(known.look(&other, true), (own, icrc::check(&packet, &other)));
                assert_eq!(known.look(&other, false), (own, Icrc::Unchecked));
                assert_eq!(known.index, 7);
            }
        }
    }

    #[test]
    fn every_bit_of_the_headers_is_free_or_another_shape() {
        let mut noise = Noise(2);
        let first = frame(WRITE_ONLY, 80, &mut noise);
        let memory = memory_of(&first);
        for bit in 0..8 * (PLAIN + 16) {
            let mut other = first.clone();
            other[bit / 8] ^= 0x80 >> (bit % 8);
            let known = memory.recall(Link::Ethernet, &other, first.len() as u32);
            let free = match bit / 8 {
                0..12 | 18..20 | 24..26 | 40..42 | 51..66 => true,
                50 => bit % 8 == 0,
                _ => false,
            };
            assert_eq!(known.is_some(), free, "bit {bit}");
        }
    }

    #[test]
    fn what_is_not_all_there_is_another_shape() {
        let mut noise = Noise(3);
        let first = frame(SEND_ONLY, 64, &mut noise);
        let len = first.len() as u32;
        let memory = memory_of(&first);
        assert!(memory.recall(Link::Ethernet, &first, len).is_some());
        assert!(memory.recall(Link::RawIp, &first, len).is_none());
        assert!(memory.recall(Link::Ethernet, &first, len + 1).is_none());
        for cut in 0..first.len() {
            assert!(memory.recall(Link::Ethernet, &first[..cut], len).is_none());
        }
        let snapped = &first[..100];
        let mut memory = Memory::default();
        let ports = Ports::default();
        let Frame::Roce(packet) = decode(Link::Ethernet, snapped, len, &ports) else { panic!() };
        memory.keep(Link::Ethernet, snapped, &packet, 0);
        let known = memory.recall(Link::Ethernet, snapped, len).unwrap();
        assert_eq!(known.look(snapped, true).1, Icrc::Unchecked);
        assert_eq!(known.look(snapped, true).0.psn, packet.psn);
    }
}
