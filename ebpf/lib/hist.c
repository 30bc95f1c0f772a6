// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "hist.h"

#include <math.h>

void hist_merge(struct hist *into, const struct hist *from)
{
	if (!from->count)
		return;
	if (!into->count || from->min < into->min)
		into->min = from->min;
	if (!into->count || from->max > into->max)
		into->max = from->max;
	into->count += from->count;
	into->sum += from->sum;
	for (int i = 0; i < LOGLIN_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
	for (int i = 0; i < LOGLIN_NEAR_BUCKETS; i++)
		into->bucket_sum[i] += from->bucket_sum[i];
}

double hist_mean(const struct hist *h)
{
	return h->count ? (double)h->sum / h->count : NAN;
}

double hist_mean_error(const struct hist *h)
{
	double lower = 0, sum = 0, squares = 0, variance;

	if (h->count < 2)
		return NAN;
	for (int i = 0; i < LOGLIN_BUCKETS; i++) {
		double upper = loglin_upper(i), middle = (lower + upper) / 2;

		sum += h->bucket[i] * middle;
		squares += h->bucket[i] * middle * middle;
		lower = upper;
	}
	variance = (squares - sum * sum / h->count) / (h->count - 1);
	return 1.96 * sqrt(fmax(variance, 0) / h->count);
}

__u64 hist_quantile(const struct hist *h, double q)
{
	double rank = ceil(q * h->count);
	__u64 below = 0;

	for (int i = 0; i < LOGLIN_BUCKETS; i++) {
		below += h->bucket[i];
		if (below && below >= rank) {
			__u64 edge = loglin_upper(i);

			return edge < h->max ? edge : h->max;
		}
	}
	return 0;
}
