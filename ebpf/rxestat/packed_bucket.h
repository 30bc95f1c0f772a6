/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bucket's count and the sum of its values in one word, which one addition keeps: PACKED_ONE plus
 * the value. The sum may run into the bits of the count: the bucket's edges say which count it is,
 * as long as count times width stays below PACKED_ONE (33 million values in the widest bucket; 134
 * million use up the word). rxestat reads its cells every minute.
 *
 * Only buckets of values that the table covers have a sum. Others hold waits of many packets at
 * once, whose sum has no limit; all of them together have one of their own (struct stage_sum).
 */
#ifndef PACKED_BUCKET_H
#define PACKED_BUCKET_H

#include <linux/types.h>

#include "hist.h"

#define PACKED_ONE (1ull << 37)

/* Into a histogram's bucket that is empty. */
static inline void packed_read(__u64 word, __u32 bucket, struct hist *into)
{
	__u64 lower = 0;

	if (bucket && bucket < LOGLIN_NEAR_BUCKETS)
		lower = loglin_upper(bucket - 1);
	into->bucket[bucket] = word / (PACKED_ONE + lower);
	into->count += into->bucket[bucket];
	if (bucket >= LOGLIN_NEAR_BUCKETS)
		return;
	into->bucket_sum[bucket] = word - into->bucket[bucket] * PACKED_ONE;
	into->sum += into->bucket_sum[bucket];
}

#endif /* PACKED_BUCKET_H */
