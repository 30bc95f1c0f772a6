// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * OSU Micro-Benchmarks: after a barrier a warm-up, then the timed loop, whose whole time is
 * divided. Collectives are timed one by one, with a barrier between them that is not timed; the
 * mean over the ranks is reported.
 */
#include "loops.h"

#define LARGE 8192 /* bytes; above, fewer of everything */

static void defaults(const struct test *test, size_t size, struct counts *counts)
{
	static const struct counts latency[] = {{10000, 100, 1}, {1000, 10, 1}},
				   bandwidth[] = {{100, 10, 1}, {20, 2, 1}},
				   collective[] = {{1000, 100, 1}, {100, 10, 1}};
	const struct counts *row = collective;

	if (test->shape == PAIRS)
		row = test->quantity == LATENCY ? latency : bandwidth;
	*counts = row[size > LARGE];
}

static double pairs(const struct test *test, struct run *run, const struct counts *counts)
{
	double began = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	for (long i = -counts->warmup; i < counts->iterations; i++) {
		if (!i)
			began = MPI_Wtime();
		stamp(run, i);
		test->once(run);
	}
	return (MPI_Wtime() - began) / counts->iterations;
}

static double collective(const struct test *test, struct run *run, const struct counts *counts)
{
	double spent = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	for (long i = -counts->warmup; i < counts->iterations; i++) {
		double began = MPI_Wtime();

		test->once(run);
		if (i >= 0)
			spent += MPI_Wtime() - began;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return spent / counts->iterations;
}

static double measure(const struct test *test, struct run *run, struct counts *counts)
{
	return test->shape == PAIRS ? pairs(test, run, counts) : collective(test, run, counts);
}

static double combine(const struct test *test, const double *all, int number)
{
	(void)test;
	return mean_of(all, number);
}

const struct method OSU = {"osu", 64, defaults, measure, combine};
