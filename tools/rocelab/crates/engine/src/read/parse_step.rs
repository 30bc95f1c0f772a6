// SPDX-License-Identifier: GPL-2.0-or-later
//! What a parser found at the start of some bytes.

pub(super) enum Step {
    /// A whole structure of this many bytes.
    Taken(usize),
    /// An incomplete structure: it needs this many bytes in all.
    Need(usize),
    /// A structure to skip: this many bytes.
    Skip(u64),
}
