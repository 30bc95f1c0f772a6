// SPDX-License-Identifier: GPL-2.0-or-later
//! Takes any bytes as fragments of IP packets.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rocelab_fuzz::fragments(input));
