// SPDX-License-Identifier: GPL-2.0-or-later
//! Payload against bytes on the wire, by message size.

use super::message::Message;
use crate::packet::Net;

/// Sums of the messages in one size class.
#[derive(Clone, Copy, Debug, Default)]
pub struct SizeClass {
    /// Messages.
    pub messages: u64,
    /// Packets of these messages.
    pub packets: u64,
    /// Their frames: IP fragments of a packet are several.
    pub frames: u64,
    /// Payload, bytes.
    pub payload_bytes: u64,
    /// Bytes on the wire.
    pub wire_bytes: u64,
}

/// Sums by net and by message size in powers of two.
#[derive(Clone, Debug)]
pub struct Efficiency {
    classes: [[SizeClass; 34]; Net::ALL.len()],
}

impl Default for Efficiency {
    fn default() -> Self {
        Self { classes: [[SizeClass::default(); 34]; Net::ALL.len()] }
    }
}

impl Efficiency {
    #[inline]
    fn class(&mut self, net: Net, bytes: u64) -> &mut SizeClass {
        let ceiling = bytes.checked_next_power_of_two().unwrap_or(1 << 32);
        let index = if bytes == 0 { 0 } else { 1 + ceiling.trailing_zeros().min(32) };
        &mut self.classes[net as usize][index as usize]
    }

    /// Counts equal messages of one packet each.
    pub(super) fn add_single(&mut self, net: Net, bytes: u64, wire_bytes: u64, count: u64) {
        let class = self.class(net, bytes);
        class.messages += count;
        class.packets += count;
        class.frames += count;
        class.payload_bytes += count * bytes;
        class.wire_bytes += count * wire_bytes;
    }

    #[inline]
    pub(super) fn add(&mut self, message: &Message) {
        let class = self.class(message.net, message.bytes);
        class.messages += 1;
        class.packets += u64::from(message.packets);
        class.frames += u64::from(message.frames);
        class.payload_bytes += message.bytes;
        class.wire_bytes += message.wire_bytes;
    }

    /// Net, largest message size, and sums of each class that occurs.
    pub fn rows(&self) -> impl Iterator<Item = (Net, u64, SizeClass)> + '_ {
        Net::ALL.into_iter().flat_map(move |net| {
            self.classes[net as usize]
                .iter()
                .enumerate()
                .filter(|(_, class)| class.messages > 0)
                .map(move |(index, class)| {
                    (net, if index == 0 { 0 } else { 1 << (index - 1) }, *class)
                })
        })
    }
}
