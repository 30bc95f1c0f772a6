// SPDX-License-Identifier: GPL-2.0-or-later
//! A capture written anew with what the analysis and the drivers' records say of each packet
//! (docs/formats/annotate.md).

mod copier;
mod engine;
mod notes;
mod packet_block;
#[cfg(feature = "python")]
pub(crate) mod python;

pub use copier::{Copier, CopyError};
pub use engine::{Annotator, Options};
pub use notes::{Notes, Written};
