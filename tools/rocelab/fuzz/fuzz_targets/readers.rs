// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads any bytes as a capture file.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rocelab_fuzz::readers(input));
