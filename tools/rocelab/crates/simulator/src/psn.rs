// SPDX-License-Identifier: GPL-2.0-or-later
//! Arithmetic of 24-bit packet sequence numbers.

pub(crate) const fn add(psn: u32, n: u32) -> u32 {
    psn.wrapping_add(n) & 0xff_ffff
}

/// `a - b` in 24 bits.
pub(crate) const fn diff(a: u32, b: u32) -> i32 {
    (a.wrapping_sub(b) << 8) as i32 >> 8
}

/// The PSN before.
pub(crate) const fn previous(psn: u32) -> u32 {
    add(psn, 0xff_ffff)
}
