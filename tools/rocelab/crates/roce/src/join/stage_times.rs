// SPDX-License-Identifier: GPL-2.0-or-later
//! Nanoseconds that the driver spent on a packet, by stage. The names come from
//! `tables/stages.csv`.

include!(concat!(env!("OUT_DIR"), "/stages.rs"));

// one bit each says which stages are present
const _: () = assert!(STAGES_MAX <= 16);

/// Nanoseconds by stage; a stage that was not measured is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    ns: [u64; STAGES_MAX],
    present: u16,
}

impl StageTimes {
    /// Nanoseconds in a stage, by its index in [`TX_STAGES`] or [`RX_STAGES`].
    #[must_use]
    pub fn get(&self, stage: usize) -> Option<u64> {
        let present = stage < STAGES_MAX && self.present >> stage & 1 == 1;
        self.ns.get(stage).copied().filter(|_| present)
    }

    /// Sets a stage that is absent; `false` if it is present or does not exist.
    pub(super) fn set(&mut self, stage: usize, ns: u64) -> bool {
        let Some(slot) = self.ns.get_mut(stage) else { return false };
        if self.present >> stage & 1 == 1 {
            return false;
        }
        *slot = ns;
        self.present |= 1 << stage;
        true
    }
}
