/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A histogram of nanoseconds in user space: the buckets of loglin.h and exact aggregates. */
#ifndef ROCELAB_HIST_H
#define ROCELAB_HIST_H

#include <linux/types.h>

#include "loglin.h"

struct hist {
	__u64 count;
	__u64 sum;
	__u32 min; /* undefined while count is 0 */
	__u32 max;
	__u64 bucket[LOGLIN_BUCKETS];
	__u64 bucket_sum[LOGLIN_NEAR_BUCKETS]; /* where the program keeps them */
};

void hist_merge(struct hist *into, const struct hist *from);
/* NaN while empty */
double hist_mean(const struct hist *h);
/*
 * Half of the 95 % confidence interval of the mean, if the values are a sample; the variance is
 * that of the buckets' middles. NaN for fewer than two values.
 */
double hist_mean_error(const struct hist *h);
/*
 * The upper edge of the bucket of the quantile (0 < q <= 1), at most the maximum. It is too high by
 * at most an eighth (below 32 ns: 4 ns). 0 while empty.
 */
__u64 hist_quantile(const struct hist *h, double q);

#endif /* ROCELAB_HIST_H */
