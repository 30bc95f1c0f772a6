// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "stamp_clock.h"

#include <stdio.h>

#include "msg.h"

#define PARAMETER "/sys/module/rdma_rxe/parameters/stamp_clock"

int stamp_clock_read(__u64 *mult)
{
	FILE *f = fopen(PARAMETER, "re");
	unsigned int factor, shift;
	int n = 0;

	if (f) {
		n = fscanf(f, "%u %u", &factor, &shift);
		fclose(f);
	}
	if (n != 2 || !factor || shift > STAMP_SHIFT)
		return msg_error(EXIT_MISSING, "the driver is older than this program",
				 "build and load it again: make module",
				 "cannot read the driver's clock from %s", PARAMETER);
	*mult = (__u64)factor << (STAMP_SHIFT - shift);
	return 0;
}

int stamp_clock_check(__u64 mult)
{
	__u64 now = mult;
	int status = mult ? stamp_clock_read(&now) : 0;

	/* the kernel measures the rate of its TSC more closely in the first seconds */
	if (status || (now > mult ? now - mult : mult - now) <= mult >> 8)
		return status;
	return msg_error(
		EXIT_RUN, "this machine was moved to another host, or its TSC proved unstable",
		"start this program again",
		"the driver has another clock since this program began: its times are wrong");
}
