// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes as a frame of any link type: decode, every accessor, ICRC and its diagnosis.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rocelab_fuzz::decoder(input));
