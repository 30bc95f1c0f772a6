// SPDX-License-Identifier: GPL-2.0-or-later
//! A log-linear histogram of times with 32 buckets per octave: quantiles are accurate to 1.6 %.

const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;

/// Counts of u64 values; allocates only the octaves that occur.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    buckets: Vec<u32>,
    /// Bucket number of `buckets[0]`.
    first: usize,
    count: u64,
    sum: u128,
    max: u64,
}

fn bucket(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() - SUB_BITS;
    ((u64::from(octave) << SUB_BITS) + (value >> octave)) as usize
}

fn lower(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB {
        return bucket;
    }
    let octave = (bucket >> SUB_BITS) - 1;
    // the last bucket ends at 2^64
    let edge = u128::from(bucket - (octave << SUB_BITS)) << octave.min(64);
    u64::try_from(edge).unwrap_or(u64::MAX)
}

impl Histogram {
    /// The count of a bucket, which may be new.
    #[inline]
    fn slot(&mut self, index: usize) -> Option<&mut u32> {
        if self.buckets.is_empty() {
            self.first = index;
        }
        if index < self.first {
            let missing = self.first - index;
            self.buckets.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = index;
        }
        let slot = index - self.first;
        if slot >= self.buckets.len() {
            self.buckets.resize(slot + 1, 0);
        }
        self.buckets.get_mut(slot)
    }

    /// Reads the first bucket.
    #[inline]
    pub(crate) fn look(&self) -> u64 {
        self.buckets.first().copied().map_or(0, u64::from)
    }

    /// Counts one value.
    pub fn add(&mut self, value: u64) {
        if let Some(count) = self.slot(bucket(value)) {
            *count = count.saturating_add(1);
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// With the values of another one.
    #[must_use]
    pub fn merged(mut self, other: &Self) -> Self {
        for (index, &more) in (other.first..).zip(&other.buckets).filter(|(_, more)| **more > 0) {
            if let Some(count) = self.slot(index) {
                *count = count.saturating_add(more);
            }
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self
    }

    /// Values counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The largest value.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Exact arithmetic mean, rounded down; 0 without values.
    #[must_use]
    pub fn mean(&self) -> u64 {
        u64::try_from(self.sum / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }

    /// The quantile `q`: the middle of its bucket, at most the maximum.
    #[must_use]
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (slot, &count) in self.buckets.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                let low = lower(self.first + slot);
                let high = lower(self.first + slot + 1);
                return (low + (high - low) / 2).min(self.max);
            }
        }
        self.max
    }

    /// Upper edge (exclusive) and count of each non-empty bucket.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.buckets
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0)
            .map(|(slot, &count)| (lower(self.first + slot + 1), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_join() {
        for value in (0..4096).chain([1 << 20, u64::MAX / 2, 1 << 62]) {
            let index = bucket(value);
            assert!(lower(index) <= value && value < lower(index + 1), "{value}");
        }
        assert_eq!(bucket(u64::MAX), 58 * 32 + 63);
    }

    #[test]
    fn quantiles() {
        let mut histogram = Histogram::default();
        for value in (1..=1000).rev() {
            histogram.add(value * 1000);
        }
        let p50 = histogram.quantile(0.5) as f64;
        assert!((p50 / 500_000.0 - 1.0).abs() < 0.032, "{p50}");
        assert_eq!(histogram.max(), 1_000_000);
        assert_eq!(histogram.mean(), 500_500);
        assert!(histogram.quantile(1.0) <= 1_000_000);
    }

    #[test]
    fn merged_with_another_one() {
        let (mut low, mut high) = (Histogram::default(), Histogram::default());
        (1..=50).for_each(|value| low.add(value * 1000));
        (51..=100).for_each(|value| high.add(value * 1000));
        for both in [low.clone().merged(&high), high.merged(&low)] {
            assert_eq!((both.count(), both.max(), both.mean()), (100, 100_000, 50_500));
            assert!((both.quantile(0.5) as f64 / 50_000.0 - 1.0).abs() < 0.032);
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut histogram = Histogram::default();
        histogram.add(u64::MAX);
        histogram.add(0);
        assert_eq!(histogram.quantile(0.1), 0);
        assert!(histogram.quantile(1.0) > u64::MAX / 2);
        assert_eq!(histogram.buckets().last().map(|(upper, _)| upper), Some(u64::MAX));
    }
}
