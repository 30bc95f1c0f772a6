// SPDX-License-Identifier: GPL-2.0-or-later
//! What the decoder does not look into: packets behind it may be RoCE.

use crate::link::link_type_name;

/// A layer that is not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// A link type, by its number.
    Link(u16),
}

impl Layer {
    /// The kind of its number: `link_type`.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Link(_) => "link_type",
        }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Link(number) => number,
        }
    }

    /// The registered name of its number, if it has one that is known here.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Link(number) => link_type_name(number),
        }
    }
}
