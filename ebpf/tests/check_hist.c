// SPDX-License-Identifier: GPL-2.0-only
/* Buckets and quantiles, against plain definitions. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"
#include "hist.h"
#include "packed_bucket.h"

/* as the BPF program does it: the table, and shifts of seven octaves */
static __u32 bucket_by_table(__u32 ns)
{
	__u32 above = 0;

	while (ns >= 1 << LOGLIN_TABLE_BITS) {
		ns >>= LOGLIN_STEP_BITS;
		above += LOGLIN_STEP_BUCKETS;
	}
	return loglin_bucket(ns >> LOGLIN_UNIT_BITS << LOGLIN_UNIT_BITS) + above;
}

static void check_value(__u32 ns)
{
	__u32 b = loglin_bucket(ns);
	__u64 lower = b ? loglin_upper(b - 1) : 0, upper = loglin_upper(b);

	CHECK(b < LOGLIN_BUCKETS, "bucket of %u is %u", ns, b);
	CHECK(lower <= ns && ns < upper, "%u not in [%" PRIu64 ", %" PRIu64 ")", ns,
	      (uint64_t)lower, (uint64_t)upper);
	CHECK(upper - lower <= (lower < 32 ? 4 : lower / 8), "bucket %u of %u is too wide", b, ns);
	CHECK(bucket_by_table(ns) == b, "%u: table says %u, plain %u", ns, bucket_by_table(ns), b);
}

static void check_buckets(void)
{
	for (__u32 ns = 0; ns < 1 << 20; ns++)
		check_value(ns);
	for (int bit = 20; bit < 32; bit++) {
		check_value((1u << bit) - 1);
		check_value(1u << bit);
		check_value((1u << bit) + 1);
	}
	check_value(~0u);
	CHECK(loglin_bucket(~0u) == LOGLIN_BUCKETS - 1, "%u", loglin_bucket(~0u));
	CHECK(loglin_upper(LOGLIN_BUCKETS - 1) == 1ull << 32, "the last bucket ends at 2^32");
	srand(1);
	for (int i = 0; i < 1000000; i++)
		check_value((__u32)rand() << 1 ^ (__u32)rand());
}

static void put(struct hist *h, __u32 ns)
{
	struct hist one = {.count = 1, .sum = ns, .min = ns, .max = ns};

	one.bucket[loglin_bucket(ns)] = 1;
	hist_merge(h, &one);
}

static int compare(const void *a, const void *b)
{
	const __u32 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void check_quantiles(void)
{
	enum { N = 10007 };
	static __u32 values[N];
	static const double quantiles[] = {0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
	struct hist h = {};
	__u64 sum = 0;

	for (int i = 0; i < N; i++) {
		values[i] = 1u << rand() % 28;
		values[i] += rand() % values[i];
		sum += values[i];
		put(&h, values[i]);
	}
	qsort(values, N, sizeof(values[0]), compare);
	CHECK(h.count == N && h.sum == sum, "count and sum are exact");
	CHECK(h.min == values[0] && h.max == values[N - 1], "min %u, max %u", h.min, h.max);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		__u32 exact = values[(int)ceil(quantiles[i] * N) - 1];
		__u64 got = hist_quantile(&h, quantiles[i]);

		CHECK(got >= exact && got <= (exact < 32 ? exact + 4 : exact * 1.125 + 1) &&
			      got <= h.max,
		      "q %.3f: exact %u, got %" PRIu64, quantiles[i], exact, (uint64_t)got);
	}
}

static void check_empty_and_single(void)
{
	struct hist h = {}, none = {};

	CHECK(isnan(hist_mean(&h)), "the mean of nothing is not a number");
	CHECK(hist_quantile(&h, 0.5) == 0, "the median of nothing");
	put(&h, 0);
	hist_merge(&h, &none);
	CHECK(h.count == 1 && h.min == 0 && h.max == 0,
	      "a zero is a value, an empty one adds none");
	CHECK(hist_quantile(&h, 0.99) == 0, "never above the maximum");
	put(&h, 7);
	CHECK(h.min == 0 && h.max == 7 && hist_mean(&h) == 3.5, "mean %f", hist_mean(&h));
	CHECK(hist_quantile(&h, 0.5) == 4, "upper edge of the first bucket");
}

/* of values that are their buckets' middles the formula is exact */
static void check_mean_error(void)
{
	struct hist h = {};

	put(&h, 2);
	CHECK(isnan(hist_mean_error(&h)), "one value says nothing of its mean's error");
	put(&h, 2);
	CHECK(hist_mean_error(&h) == 0, "equal values: %f", hist_mean_error(&h));
	/* 2, 2, 6, 6: variance 16/3 */
	put(&h, 6);
	put(&h, 6);
	CHECK(fabs(hist_mean_error(&h) - 1.96 * sqrt(16.0 / 3 / 4)) < 1e-9, "error %f",
	      hist_mean_error(&h));
}

/* what the BPF program adds up in a word, read back */
static void check_packed(void)
{
	static const __u64 counts[] = {1, 2, 199, 1000000, 30000000};

	CHECK(loglin_bucket((1 << LOGLIN_TABLE_BITS) - 1) == LOGLIN_NEAR_BUCKETS - 1,
	      "the table covers the buckets that have a sum");
	CHECK(loglin_bucket(1 << LOGLIN_TABLE_BITS) == LOGLIN_NEAR_BUCKETS, "and no other");
	for (__u32 b = 0; b < LOGLIN_BUCKETS; b++) {
		__u64 lower = b ? loglin_upper(b - 1) : 0, upper = loglin_upper(b) - 1;
		bool near = b < LOGLIN_NEAR_BUCKETS;

		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			__u64 n = counts[i], sums[] = {n * lower, n * lower + 1, n * upper};

			for (int k = 0; k < 3; k++) {
				__u64 sum = near ? sums[k] : 0;
				struct hist h = {};

				packed_read(n * PACKED_ONE + sum, b, &h);
				CHECK(h.bucket[b] == n && h.count == n && h.sum == sum,
				      "bucket %u: %" PRIu64 " of %" PRIu64 ", sum %" PRIu64, b,
				      (uint64_t)h.bucket[b], (uint64_t)n, (uint64_t)h.sum);
				CHECK(!near || h.bucket_sum[b] == sum, "bucket %u: its sum", b);
			}
		}
	}
}

int main(void)
{
	check_buckets();
	check_packed();
	check_quantiles();
	check_empty_and_single();
	check_mean_error();
	return check_end("hist");
}
