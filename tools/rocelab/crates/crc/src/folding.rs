// SPDX-License-Identifier: GPL-2.0-or-later
//! CRC-32 by carry-less multiplication: a block is folded onto the next one by multiplying it with a
//! power of x modulo the polynomial (Gopal et al., "Fast CRC Computation for Generic Polynomials Using
//! PCLMULQDQ Instruction", Intel 2009). The bit order is reflected: the lowest power is the top bit.
// newer compilers consider these intrinsics safe, older ones do not
#![allow(unsafe_op_in_unsafe_fn)]

use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_clmulepi64_si128, _mm_extract_epi32, _mm_set_epi64x,
    _mm_srli_si128, _mm_xor_si128,
};
use std::ops::Range;

/// For longer pieces the wider steps of crc32fast are faster.
pub(crate) const LENGTHS: Range<usize> = 4..192;

const BLOCK: usize = 16;
/// Without x^32.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// A polynomial of 32 bits times x, modulo the polynomial.
const fn times_x(bits: u32) -> u32 {
    bits >> 1 ^ if bits & 1 == 1 { POLYNOMIAL } else { 0 }
}

/// x to the `n`, modulo the polynomial.
const fn power(n: u32) -> u32 {
    let mut bits = 1 << 31;
    let mut done = 0;
    while done < n {
        bits = times_x(bits);
        done += 1;
    }
    bits
}

/// A factor of x to the `n + 32`: 31 bits below the top of 64, and the product of two such
/// polynomials is another bit below.
const fn factor(n: u32) -> i64 {
    (power(n) as i64) << 1
}

/// x^64 divided by the whole polynomial, in 33 bits.
const fn quotient() -> i64 {
    let mut bits = 1;
    let mut rest = power(32);
    let mut place = 1;
    while place <= 32 {
        bits |= ((rest & 1) as i64) << place;
        rest = times_x(rest);
        place += 1;
    }
    bits
}

/// The polynomial with x^32.
const WHOLE: i64 = (POLYNOMIAL as i64) << 1 | 1;
const QUOTIENT: i64 = quotient();
/// The two halves of a block, each to its place one block on.
const FIRST_HALF: i64 = factor(BLOCK as u32 * 8 + 32);
const SECOND_HALF: i64 = factor(BLOCK as u32 * 8 - 32);
/// 32 bits, to their place 96 bits on.
const WORD: i64 = factor(64);

/// See [`super::Crc32::update`], of a length in [`LENGTHS`].
///
/// # Safety
/// The processor must have `avx`, `pclmulqdq` and `sse4.1`.
#[target_feature(enable = "avx,pclmulqdq,sse4.1")]
pub(crate) unsafe fn update(before: u32, bytes: &[u8]) -> u32 {
    let state = u128::from(!before);
    let odd = bytes.len() % BLOCK;
    // leading zeros complete the first block and do not change the CRC
    let behind = |block: u128| block << (8 * (BLOCK - odd));
    let mut x;
    let mut blocks;
    match bytes.split_first_chunk::<BLOCK>() {
        None => {
            x = vector(behind(short(bytes) ^ state));
            blocks = &[][..];
        }
        Some((first, others)) if odd == 0 => {
            x = vector(u128::from_le_bytes(*first) ^ state);
            blocks = others;
        }
        Some((first, _)) => {
            x = vector(behind(u128::from_le_bytes(*first) ^ state));
            // the part of the state beyond the odd bytes
            x = _mm_xor_si128(fold(x), vector(state >> (8 * odd)));
            blocks = bytes.get(odd..).unwrap_or_default();
            if let Some((second, others)) = blocks.split_first_chunk::<BLOCK>() {
                x = _mm_xor_si128(x, vector(u128::from_le_bytes(*second)));
                blocks = others;
            }
        }
    }
    while let Some((next, others)) = blocks.split_first_chunk::<BLOCK>() {
        x = _mm_xor_si128(fold(x), vector(u128::from_le_bytes(*next)));
        blocks = others;
    }
    !reduce(x)
}

/// At least 4 bytes, fewer than a block, padded with zeros.
#[inline]
fn short(bytes: &[u8]) -> u128 {
    let last = |len: usize| 8 * bytes.len().saturating_sub(len);
    if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u128::from(u64::from_le_bytes(*head))
            | u128::from(u64::from_le_bytes(*tail)) << last(8);
    }
    let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) else { return 0 };
    u128::from(u32::from_le_bytes(*head)) | u128::from(u32::from_le_bytes(*tail)) << last(4)
}

#[inline]
#[target_feature(enable = "avx,pclmulqdq,sse4.1")]
unsafe fn vector(block: u128) -> __m128i {
    _mm_set_epi64x((block >> 64) as i64, block as i64)
}

/// Folds a block by one block.
#[inline]
#[target_feature(enable = "avx,pclmulqdq,sse4.1")]
unsafe fn fold(x: __m128i) -> __m128i {
    let by = _mm_set_epi64x(SECOND_HALF, FIRST_HALF);
    _mm_xor_si128(_mm_clmulepi64_si128::<0x00>(x, by), _mm_clmulepi64_si128::<0x11>(x, by))
}

/// The last block times x^32, modulo the polynomial.
#[inline]
#[target_feature(enable = "avx,pclmulqdq,sse4.1")]
unsafe fn reduce(x: __m128i) -> u32 {
    let low_32 = _mm_set_epi64x(0, 0xffff_ffff);
    let by = _mm_set_epi64x(WORD, SECOND_HALF);
    // 128 bits to 96, to 64
    let x = _mm_xor_si128(_mm_clmulepi64_si128::<0x00>(x, by), _mm_srli_si128::<8>(x));
    let top = _mm_and_si128(x, low_32);
    let x = _mm_xor_si128(_mm_clmulepi64_si128::<0x10>(top, by), _mm_srli_si128::<4>(x));
    // Barrett reduction
    let by = _mm_set_epi64x(WHOLE, QUOTIENT);
    let often = _mm_clmulepi64_si128::<0x00>(_mm_and_si128(x, low_32), by);
    let multiple = _mm_clmulepi64_si128::<0x10>(_mm_and_si128(often, low_32), by);
    _mm_extract_epi32::<1>(_mm_xor_si128(x, multiple)) as u32
}
