// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * SKaMPI 5: each repetition is timed on its own, and the slowest rank's time is the repetition's.
 * They continue, in batches, until the standard error of their mean is small enough, or there are
 * many. The quarter with the smallest times and that with the largest are left out of the mean.
 * Ranks start together by a barrier (SKaMPI's SYNC_BARRIER, not its synchronised clocks).
 */
#include "loops.h"

#include <math.h>
#include <stdlib.h>

#include "memory.h"

#define MIN_ITERATIONS 8
#define MAX_ITERATIONS 33
#define MAX_ERROR      0.10 /* of the mean */

static void defaults(const struct test *test, size_t size, struct counts *counts)
{
	(void)test;
	(void)size;
	counts->iterations = MAX_ITERATIONS;
	counts->warmup = 0;
}

static int smaller_first(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

static bool precise(const double *times, long number)
{
	double mean = mean_of(times, (int)number), squares = 0;

	for (long i = 0; i < number; i++)
		squares += (times[i] - mean) * (times[i] - mean);
	return sqrt(squares / ((double)number * (double)(number - 1))) <= MAX_ERROR * mean;
}

/* Of the ranks that began a ping-pong or stream, or of all of a collective's. */
static double slowest(const struct test *test, const struct run *run, double spent)
{
	double all;

	if (test->shape == PAIRS && run->at->rank >= (test->all_pairs ? run->at->ranks / 2 : 1))
		spent = 0;
	MPI_Allreduce(&spent, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

static double measure(const struct test *test, struct run *run, struct counts *counts)
{
	long most = counts->iterations, fewest = most < MIN_ITERATIONS ? most : MIN_ITERATIONS,
	     done = 0, cut;
	double *times = memory_get(most, sizeof(*times)), result;

	for (long i = 0; i < counts->warmup; i++)
		test->once(run);
	do {
		long end = done + fewest < most ? done + fewest : most, first = done;

		for (; done < end; done++) {
			double began;

			MPI_Barrier(MPI_COMM_WORLD);
			began = MPI_Wtime();
			stamp(run, done);
			test->once(run);
			times[done] = MPI_Wtime() - began;
		}
		/* between the batches, so that nothing else is on the link in one */
		for (long i = first; i < done; i++)
			times[i] = slowest(test, run, times[i]);
	} while (done < most && !precise(times, done));
	qsort(times, done, sizeof(*times), smaller_first);
	cut = done / 4;
	result = mean_of(times + cut, (int)(done - 2 * cut));
	free(times);
	counts->iterations = done;
	return result;
}

/* all ranks have the same result already */
static double combine(const struct test *test, const double *all, int number)
{
	(void)test;
	(void)number;
	return all[0];
}

const struct method SKAMPI = {"skampi", 64, defaults, measure, combine};
