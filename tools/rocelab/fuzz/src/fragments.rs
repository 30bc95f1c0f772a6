// SPDX-License-Identifier: GPL-2.0-or-later
//! Fragments of IP packets: any frames, and a packet in pieces of any lengths and order.

use roce::{FragmentFrame, Frame, Link, Ports, Reassembly, Whole, decode};

const UDP: u8 = 17;
const IPV6_FRAGMENT: u8 = 44;

fn add(reassembly: &mut Reassembly, link: Link, bytes: &[u8], time_ns: i64) -> Option<Whole> {
    let wire_len = bytes.len() as u32;
    let frame = FragmentFrame { link, bytes, wire_len, time_ns, place: 0 };
    reassembly.add(&frame, &Ports::default())
}

/// Takes bytes as frames, one after the other, and as a plan by which a packet is cut.
pub fn fragments(input: &[u8]) {
    any_frames(input);
    let Some((plan, rest)) = input.split_first_chunk::<8>() else { return };
    let mut content = [0xc0, 0, 0x12, 0xb7, 0, 0, 0, 0].to_vec();
    content.extend(rest.iter().take(4096));
    let len = (content.len() as u16).to_be_bytes();
    content[4..6].copy_from_slice(&len);
    let v4 = plan[0] & 1 == 0;
    pieces(plan, &content, v4);
}

/// Frames of up to 255 bytes, each behind its length.
fn any_frames(mut input: &[u8]) {
    let mut reassembly = Reassembly::default();
    let mut time_ns = 0;
    while let Some((&len, rest)) = input.split_first() {
        let (frame, behind) = rest.split_at(usize::from(len).min(rest.len()));
        let whole = add(&mut reassembly, Link::from_number(1), frame, time_ns);
        if let Some(whole) = whole {
            assert!(whole.frame.len() <= whole.wire_len as usize);
            assert!(whole.fragments > 0);
            let _ = decode(Link::Ethernet, &whole.frame, whole.wire_len, &Ports::default());
        }
        (input, time_ns) = (behind, time_ns + i64::from(len));
    }
}

/// A packet in pieces is put together in any order, also if pieces come twice; not if one differs.
fn pieces(plan: &[u8; 8], content: &[u8], v4: bool) {
    let (mut parts, mut from) = (Vec::new(), 0);
    for (index, _) in content.iter().enumerate() {
        if from >= content.len() || parts.len() > 40 {
            break;
        }
        let len = (usize::from(plan[index % 8] >> 1) + 1) * 8;
        let to = if parts.len() == 40 { content.len() } else { (from + len).min(content.len()) };
        parts.push((from, to));
        from = to;
    }
    if parts.len() < 2 {
        return;
    }
    let mut frames: Vec<_> = parts.iter().map(|&part| frame(content, part, v4)).collect();
    frames.rotate_left(usize::from(plan[1]) % parts.len());
    if plan[2] & 1 != 0 {
        frames.reverse();
    }
    let (last, before) = frames.split_last().expect("two pieces");
    let twice = usize::from(plan[3]) % before.len();
    for differs in [false, true] {
        let mut reassembly = Reassembly::default();
        for one in before {
            assert!(add(&mut reassembly, Link::Ethernet, one, 0).is_none());
        }
        let mut again = before[twice].clone();
        if differs {
            let end = again.len() - 1;
            again[end] ^= 1;
        }
        assert!(add(&mut reassembly, Link::Ethernet, &again, 0).is_none());
        let whole = add(&mut reassembly, Link::Ethernet, last, 0);
        if differs {
            assert!(whole.is_none());
            continue;
        }
        let whole = whole.expect("all pieces came");
        assert_eq!(whole.fragments as usize, parts.len());
        let headers = if v4 { 34 } else { 54 };
        assert_eq!(&whole.frame[headers..], content);
        assert_eq!(whole.frame.len(), whole.wire_len as usize);
        let decoded = decode(Link::Ethernet, &whole.frame, whole.wire_len, &Ports::default());
        match decoded {
            Frame::Roce(packet) => assert_eq!(usize::from(packet.l3_off), 14),
            other => assert!(content.len() < 20, "{other:?}"),
        }
    }
}

/// An Ethernet frame with a part of a packet's content.
fn frame(content: &[u8], (from, to): (usize, usize), v4: bool) -> Vec<u8> {
    let more = to < content.len();
    let mut frame = vec![2; 12];
    if v4 {
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend(((20 + to - from) as u16).to_be_bytes());
        frame.extend([0, 9]);
        frame.extend(((from / 8) as u16 | if more { 0x2000 } else { 0 }).to_be_bytes());
        frame.extend([64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    } else {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(((8 + to - from) as u16).to_be_bytes());
        frame.extend([IPV6_FRAGMENT, 64]);
        frame.extend([0xfd; 16]);
        frame.extend([0xfe; 16]);
        frame.extend([UDP, 0]);
        frame.extend((from as u16 | u16::from(more)).to_be_bytes());
        frame.extend([0, 0, 0, 9]);
    }
    frame.extend(&content[from..to]);
    frame
}
