// SPDX-License-Identifier: GPL-2.0-or-later
//! Serial arithmetic on 24-bit packet sequence numbers.

/// The largest PSN; adding it subtracts one.
pub(crate) const MASK: u32 = 0x00ff_ffff;

/// `psn + n`, wrapped.
#[inline]
pub(crate) const fn add(psn: u32, n: u32) -> u32 {
    psn.wrapping_add(n) & MASK
}

/// `a - b`: positive if `a` comes after `b`, within half the number space.
#[inline]
pub(crate) const fn diff(a: u32, b: u32) -> i32 {
    ((a.wrapping_sub(b) << 8) as i32) >> 8
}

/// `a` comes before `b`.
#[inline]
pub(crate) const fn before(a: u32, b: u32) -> bool {
    diff(a, b) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps() {
        assert_eq!(diff(2, 0xff_fffe), 4);
        assert_eq!(diff(0xff_fffe, 2), -4);
        assert_eq!(add(0xff_ffff, 1), 0);
        assert!(before(0xff_ffff, 0));
    }
}
