// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes as a capture, through the whole pipeline with tight limits.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rocelab_fuzz::tracker(input));
