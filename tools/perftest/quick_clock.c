// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * quick_clock.so, preloaded on machines that count instructions (docs/formats/run.md).
 *
 * perftest takes the rate of its processor's clock from 200 pairs of calls of gettimeofday(): it
 * spins until the second is 0.1 to 2.1 ms after the first, which is 219 million instructions, twice
 * in a latency test, on both nodes. It fits a line through clock ticks and microseconds
 * (sample_get_cpu_mhz() in src/get_clock.c), and nothing else in it calls gettimeofday(). Here the
 * second call returns after 0 to 40 us, and adds to the time what the spin waits for. A constant
 * does not change the slope.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

#define LONGEST_US 3000 /* more than it ever waits for */
#define SPREAD_US  41	/* of the distances, in steps that share no factor with it */
#define STEP_US	   7

static long long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	static long long begun_us;
	static unsigned int pairs;
	static bool is_second;
	long long us = now_us();

	(void)zone;
	if (!is_second) {
		begun_us = us;
	} else {
		while (us < begun_us + pairs * STEP_US % SPREAD_US)
			us = now_us();
		us += LONGEST_US;
		pairs++;
	}
	is_second = !is_second;
	tv->tv_sec = us / 1000000;
	tv->tv_usec = us % 1000000;
	return 0;
}
