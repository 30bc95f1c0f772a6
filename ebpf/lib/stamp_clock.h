/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The unit of the times in rxe_tx_stamps and rxe_rx_stamps, as the driver states it. */
#ifndef ROCELAB_STAMP_CLOCK_H
#define ROCELAB_STAMP_CLOCK_H

#include <linux/types.h>

/* ns = stamps * mult >> STAMP_SHIFT, of stamps below 2^32 */
#define STAMP_SHIFT 32

/* Read mult. Returns 0, or prints the error and returns the exit status. */
int stamp_clock_read(__u64 *mult);
/*
 * Times that were taken since a program read mult, another than 0: did the driver choose another
 * clock meanwhile? Returns 0, or prints the error and returns the exit status.
 */
int stamp_clock_check(__u64 mult);
/* the smallest number of stamps that are ns or more */
static inline __u64 stamp_clock_least(__u64 mult, __u32 ns)
{
	return (((__u64)ns << STAMP_SHIFT) + mult - 1) / mult;
}

#endif /* ROCELAB_STAMP_CLOCK_H */
