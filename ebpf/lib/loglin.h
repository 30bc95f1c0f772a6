/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Log-linear buckets of 32-bit values: eight equal buckets in each octave, 4 wide below 32. A
 * bucket is then at most an eighth of its lower edge wide.
 *
 * The scheme repeats every octave, so one table, of the values below 65536, serves all:
 * a larger value is shifted right by whole octaves first (which keeps the sub-bucket, as long as
 * 32 or more remains) and the octaves are added to the table's answer. A lookup costs far fewer
 * instructions in BPF, which cannot count leading zeros, than searching for the highest bit.
 */
#ifndef ROCELAB_LOGLIN_H
#define ROCELAB_LOGLIN_H

#include <linux/types.h>

#define LOGLIN_SUB_BITS	    3  /* 8 buckets per octave */
#define LOGLIN_UNIT_BITS    2  /* the narrowest are 4 wide */
#define LOGLIN_TABLE_BITS   16 /* the table covers 0 … 65535 */
#define LOGLIN_STEP_BITS    11 /* octaves that one shift removes: 65536 >> 11 = 32 */
#define LOGLIN_STEP_BUCKETS (LOGLIN_STEP_BITS << LOGLIN_SUB_BITS)
#define LOGLIN_TABLE_LEN    (1 << (LOGLIN_TABLE_BITS - LOGLIN_UNIT_BITS))
#define LOGLIN_BUCKETS	    224 /* of 32-bit values */
#define LOGLIN_NEAR_BUCKETS 96	/* of values that the table covers */
#define LOGLIN_SLOTS	    256 /* what any __u8 from the table may index */

/* the bucket of a value by its definition; fills and checks the table */
static inline __u32 loglin_bucket(__u32 value)
{
	__u32 units = value >> LOGLIN_UNIT_BITS;
	__u32 octave = 0;

	while (units >> octave >= 2 << LOGLIN_SUB_BITS)
		octave++;
	/* the buckets of the first two octaves, 0 … 15, are one unit wide */
	return (octave << LOGLIN_SUB_BITS) + (units >> octave);
}

/* the smallest value above the bucket */
static inline __u64 loglin_upper(__u32 bucket)
{
	__u32 octave = bucket >> LOGLIN_SUB_BITS;
	__u64 next = bucket + 1;

	if (octave < 2)
		return next << LOGLIN_UNIT_BITS;
	octave--;
	next -= (__u64)octave << LOGLIN_SUB_BITS;
	return next << octave << LOGLIN_UNIT_BITS;
}

#endif /* ROCELAB_LOGLIN_H */
