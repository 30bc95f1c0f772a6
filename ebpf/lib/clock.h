/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ROCELAB_CLOCK_H
#define ROCELAB_CLOCK_H

#include <linux/types.h>
#include <time.h>

/* now, in ns */
static inline __u64 clock_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

#endif /* ROCELAB_CLOCK_H */
