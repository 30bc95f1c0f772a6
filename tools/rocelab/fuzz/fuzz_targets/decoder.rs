// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes as a frame of any link type: decode, every accessor, ICRC and its diagnosis.
#![no_main]

use libfuzzer_sys::fuzz_target;
use roce::{Frame, Link, Ports, decode, icrc};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, frame)) = input.split_first() else { return };
    let link = match choice & 3 {
        0 => Link::Ethernet,
        1 => Link::LinuxSll,
        2 => Link::LinuxSll2,
        _ => Link::RawIp,
    };
    // the rest of the choice lengthens the frame on the wire: a snapped capture
    let wire_len = frame.len() as u32 + u32::from(choice >> 2) * 16;
    let Frame::Roce(packet) = decode(link, frame, wire_len, &Ports::default()) else { return };
    assert!(usize::from(packet.bth_off) + roce::BTH_LEN <= frame.len());
    assert!(packet.payload(frame).len() <= packet.payload_len as usize);
    let _ = (packet.reth(frame), packet.aeth(frame), packet.deth(frame), packet.atomic(frame));
    let _ = (packet.atomic_ack(frame), packet.imm(frame), packet.ieth(frame));
    let _ = (packet.xrcsrq(frame), packet.rdeth(frame), packet.feth(frame));
    let _ = roce::cm::parse(&packet, frame);
    let bad = icrc::check(&packet, frame) == roce::Icrc::Bad;
    assert_eq!(icrc::diagnose(&packet, frame).is_some(), bad);
});
