/* SPDX-License-Identifier: GPL-2.0-only */
/* The bucket of a value (loglin.h) in a BPF program. */
#ifndef ROCELAB_LOGLIN_BPF_H
#define ROCELAB_LOGLIN_BPF_H

#include "bounded.bpf.h"
#include "loglin.h"

/* filled before loading: loglin_fill_table() */
const volatile __u8 bucket_table[LOGLIN_TABLE_LEN] = {};

static __noinline __u32 bucket_beyond_table(__u32 ns)
{
	__u32 above = 0;

	while (ns >= 1 << LOGLIN_TABLE_BITS) { /* twice at most */
		ns >>= LOGLIN_STEP_BITS;
		above += LOGLIN_STEP_BUCKETS;
	}
	ns = bounded(ns >> LOGLIN_UNIT_BITS, LOGLIN_TABLE_LEN - 1);
	return bucket_table[ns] + above;
}

#endif /* ROCELAB_LOGLIN_BPF_H */
