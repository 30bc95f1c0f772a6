// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Intel MPI Benchmarks: a warm-up with the smallest message, two barriers, then one timed loop
 * without any synchronisation in it, for collectives too. Collectives report the mean over the
 * ranks, streams and several pairs at once the slowest one.
 */
#include "loops.h"

#define MESSAGES 1000	    /* maximum */
#define VOLUME	 (40 << 20) /* maximum, in bytes */
#define WARMUP	 2
#define BARRIERS 2

static void defaults(const struct test *test, size_t size, struct counts *counts)
{
	long fit = size ? (long)(VOLUME / size) : MESSAGES;

	(void)test;
	counts->iterations = fit < 1 ? 1 : fit < MESSAGES ? fit : MESSAGES;
	counts->warmup = WARMUP;
}

static double measure(const struct test *test, struct run *run, struct counts *counts)
{
	size_t size = run->size;
	double began;

	run->size = test->sized ? ELEMENT : 0;
	for (long i = 0; i < counts->warmup; i++)
		test->once(run);
	run->size = size;
	for (int i = 0; i < BARRIERS; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	began = MPI_Wtime();
	for (long i = 0; i < counts->iterations; i++) {
		stamp(run, i);
		test->once(run);
	}
	return (MPI_Wtime() - began) / counts->iterations;
}

static double combine(const struct test *test, const double *all, int number)
{
	return test->shape == COLLECTIVE ? mean_of(all, number) : largest_of(all, number);
}

const struct method IMB = {"imb", 64, defaults, measure, combine};
