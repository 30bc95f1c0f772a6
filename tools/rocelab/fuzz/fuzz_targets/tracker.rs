// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs any bytes as a capture through the whole pipeline.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rocelab_fuzz::tracker(input));
