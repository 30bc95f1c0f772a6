// SPDX-License-Identifier: GPL-2.0-or-later
//! Sums over time in a bounded number of equal intervals, whose length doubles when they run out. Intervals
//! without packets take no memory: of thousands of connections, most are idle most of the time.

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
    /// The intervals that packets were added to, by their number from the start.
    used: Vec<(u32, Interval)>,
    limit: u32,
    /// The place of the last packet's interval, and its bounds, which save most packets a division.
    current: usize,
    current_ns: (i64, i64),
}

impl Series {
    /// Starts with intervals of 1 ms.
    #[must_use]
    pub const fn new(limit: u32) -> Self {
        Self {
            start_ns: i64::MIN,
            step_ns: 1_000_000,
            used: Vec::new(),
            limit,
            current: 0,
            current_ns: (0, 0),
        }
    }

    /// The intervals, from the first to the last that packets were added to.
    #[must_use]
    pub fn intervals(&self) -> Vec<Interval> {
        let count = self.used.last().map_or(0, |&(last, _)| last as usize + 1);
        let mut intervals = vec![Interval::default(); count];
        for &(index, interval) in &self.used {
            if let Some(place) = intervals.get_mut(index as usize) {
                *place = interval;
            }
        }
        intervals
    }

    /// Adds to the interval of `time_ns`; times before the first packet go to the first interval.
    #[inline]
    pub fn add(&mut self, time_ns: i64, packet: Interval) {
        self.turn_to(time_ns);
        self.add_to_current(packet);
    }

    /// Reads the interval of the last packet.
    #[inline]
    pub(crate) fn look(&self) -> u64 {
        self.used.get(self.current).map_or(0, |(_, interval)| interval.payload_bytes)
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
        if let Some((_, interval)) = self.used.get_mut(self.current) {
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
        while since / self.step_ns >= i64::from(self.limit) {
            self.halve();
        }
        let index = (since / self.step_ns) as u32;
        // times rarely go back
        let place = match self.used.last() {
            Some(&(last, _)) if last == index => self.used.len() - 1,
            Some(&(last, _)) if last > index => {
                self.used.partition_point(|&(used, _)| used < index)
            }
            _ => self.used.len(),
        };
        if self.used.get(place).is_none_or(|&(used, _)| used != index) {
            self.used.insert(place, (index, Interval::default()));
        }
        self.current = place;
        let from = self.start_ns.saturating_add(self.step_ns.saturating_mul(i64::from(index)));
        self.current_ns = (from, from.saturating_add(self.step_ns));
    }

    fn halve(&mut self) {
        self.step_ns = self.step_ns.saturating_mul(2);
        for (index, _) in &mut self.used {
            *index /= 2;
        }
        self.used.dedup_by(|(later, from), (index, sum)| {
            let same = later == index;
            if same {
                sum.packets = sum.packets.saturating_add(from.packets);
                sum.retransmitted = sum.retransmitted.saturating_add(from.retransmitted);
                sum.payload_bytes += from.payload_bytes;
            }
            same
        });
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
        assert!(series.intervals().len() <= 8);
        assert_eq!(series.intervals().iter().map(|i| u64::from(i.packets)).sum::<u64>(), 1001);
        assert_eq!(series.intervals().iter().map(|i| i.payload_bytes).sum::<u64>(), 3000);
    }
    #[test]
    fn an_idle_time_takes_no_memory() {
        let mut series = Series::new(1024);
        let packet = Interval { packets: 1, retransmitted: 0, payload_bytes: 0 };
        for time_ns in [0, 900_000_000, 500_000_000, 900_100_000] {
            series.add(time_ns, packet);
        }
        assert_eq!(series.used.len(), 3);
        let intervals = series.intervals();
        assert_eq!(intervals.len(), 901);
        let counts = [0, 500, 900].map(|index: usize| intervals[index].packets);
        assert_eq!(counts, [1, 1, 2]);
    }
}
