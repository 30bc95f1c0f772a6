// SPDX-License-Identifier: GPL-2.0-or-later
//! Bounded big-endian reads: `None` outside the slice, never a panic.

#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

#[inline]
pub(crate) fn u8(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

#[inline]
pub(crate) fn u16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

#[inline]
pub(crate) fn u24(bytes: &[u8], at: usize) -> Option<u32> {
    array::<3>(bytes, at).map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
}

#[inline]
pub(crate) fn u32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

#[inline]
pub(crate) fn u64(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_be_bytes)
}
