// SPDX-License-Identifier: GPL-2.0-or-later
//! Sums over time in a bounded number of equal intervals, whose length doubles when they run out.

/// One interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Packets.
    pub packets: u32,
    /// Retransmitted data packets.
    pub retransmitted: u32,
    /// Payload, bytes.
    pub payload_bytes: u64,
}

/// At most `limit` intervals from the first packet on.
#[derive(Clone, Debug)]
pub struct Series {
    /// Start of the first interval, ns since 1970.
    pub start_ns: i64,
    /// Length of an interval, ns.
    pub step_ns: i64,
    /// The intervals.
    pub intervals: Vec<Interval>,
    limit: usize,
    /// The interval of the last packet and its bounds, which save most packets a division.
    current: usize,
    current_ns: (i64, i64),
}

impl Series {
    /// Starts with intervals of 1 ms.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            start_ns: i64::MIN,
            step_ns: 1_000_000,
            intervals: Vec::new(),
            limit,
            current: 0,
            current_ns: (0, 0),
        }
    }

    /// Adds to the interval of `time_ns`; times before the first packet go to the first interval.
    #[inline]
    pub fn add(&mut self, time_ns: i64, packet: Interval) {
        self.turn_to(time_ns);
        self.add_to_current(packet);
    }

    /// Makes the interval of `time_ns` the current one.
    #[inline]
    pub fn turn_to(&mut self, time_ns: i64) {
        if !self.is_current(time_ns) {
            self.turn(time_ns);
        }
    }

    /// Whether the time is in the interval of the last packet.
    #[must_use]
    #[inline]
    pub fn is_current(&self, time_ns: i64) -> bool {
        (self.current_ns.0..self.current_ns.1).contains(&time_ns)
    }

    /// Adds to the interval of the last packet.
    #[inline]
    pub fn add_to_current(&mut self, packet: Interval) {
        if let Some(interval) = self.intervals.get_mut(self.current) {
            interval.packets = interval.packets.saturating_add(packet.packets);
            interval.retransmitted = interval.retransmitted.saturating_add(packet.retransmitted);
            interval.payload_bytes += packet.payload_bytes;
        }
    }

    #[cold]
    fn turn(&mut self, time_ns: i64) {
        if self.start_ns == i64::MIN {
            self.start_ns = time_ns;
        }
        let since = time_ns.saturating_sub(self.start_ns).max(0);
        while since / self.step_ns >= self.limit as i64 {
            self.halve();
        }
        let index = (since / self.step_ns) as usize;
        if index >= self.intervals.len() {
            self.intervals.resize(index + 1, Interval::default());
        }
        self.current = index;
        let from = self.start_ns.saturating_add(self.step_ns.saturating_mul(index as i64));
        self.current_ns = (from, from.saturating_add(self.step_ns));
    }

    fn halve(&mut self) {
        self.step_ns = self.step_ns.saturating_mul(2);
        let pairs = self.intervals.chunks(2).map(|pair| {
            pair.iter().fold(Interval::default(), |sum, interval| Interval {
                packets: sum.packets.saturating_add(interval.packets),
                retransmitted: sum.retransmitted.saturating_add(interval.retransmitted),
                payload_bytes: sum.payload_bytes + interval.payload_bytes,
            })
        });
        self.intervals = pairs.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_sums_when_intervals_double() {
        let mut series = Series::new(8);
        for i in 0..1000 {
            series.add(i * 1_000_000, Interval { packets: 1, retransmitted: 0, payload_bytes: 3 });
        }
        series.add(i64::MAX, Interval { packets: 1, retransmitted: 1, payload_bytes: 0 });
        assert!(series.intervals.len() <= 8);
        assert_eq!(series.intervals.iter().map(|i| u64::from(i.packets)).sum::<u64>(), 1001);
        assert_eq!(series.intervals.iter().map(|i| i.payload_bytes).sum::<u64>(), 3000);
    }
}
