// SPDX-License-Identifier: GPL-2.0-or-later
//! The CRC-32 of Ethernet (IEEE 802.3) over many short pieces.
//!
//! crc32fast detects the processor's features for each piece, which costs half as much as the CRC of
//! 80 bytes. This crate detects them once and folds short pieces itself; crc32fast does the rest.
//! `unsafe` is needed for one thing only: to call a function that is compiled for instructions that
//! not every processor has, after this processor was found to have them.

#[cfg(target_arch = "x86_64")]
mod folding;

/// The way in which this processor computes CRCs.
#[derive(Clone, Copy, Debug)]
pub struct Crc32 {
    /// The processor multiplies without carry; set only by feature detection.
    #[cfg(target_arch = "x86_64")]
    folds: bool,
}

impl Default for Crc32 {
    fn default() -> Self {
        Self::new()
    }
}

impl Crc32 {
    /// Detects the features of the processor.
    #[must_use]
    pub fn new() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            folds: is_x86_feature_detected!("avx")
                && is_x86_feature_detected!("pclmulqdq")
                && is_x86_feature_detected!("sse4.1"),
        }
    }

    /// Continues the CRC `before` (0: no bytes yet) with `bytes`.
    #[must_use]
    #[inline]
    pub fn update(self, before: u32, bytes: &[u8]) -> u32 {
        #[cfg(target_arch = "x86_64")]
        if self.folds && folding::LENGTHS.contains(&bytes.len()) {
            // SAFETY: `new` found the features that the function is compiled for
            return unsafe { folding::update(before, bytes) };
        }
        any_length(before, bytes)
    }
}

#[inline(never)]
fn any_length(before: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(before);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value() {
        // CRC-32/ISO-HDLC in the catalogue of parametrised CRC algorithms
        assert_eq!(Crc32::new().update(0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn every_length_agrees_with_the_bitwise_crc() {
        let mut seed = 1_u64;
        let mut noise = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        };
        for length in 0..600 {
            for _ in 0..4 {
                let bytes: Vec<u8> = (0..length).map(|_| noise()).collect();
                let before = u32::from_le_bytes(std::array::from_fn(|_| noise()));
                assert_eq!(Crc32::new().update(before, &bytes), slow(before, &bytes), "{length}");
                assert_eq!(any_length(before, &bytes), slow(before, &bytes), "{length}");
            }
        }
    }

    fn slow(before: u32, bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!before, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| {
                crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
            })
        })
    }
}
