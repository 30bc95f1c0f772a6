// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes as a capture file, compressed or not: read to the end in pieces of a hostile size.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rocelab_fuzz::readers(input));
