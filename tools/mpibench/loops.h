/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The methods, one file each. */
#ifndef MPIBENCH_LOOPS_H
#define MPIBENCH_LOOPS_H

#include "method.h"

extern const struct method OSU, IMB, SKAMPI;

/* Call before each operation; warm-ups have numbers below 0. */
static inline void stamp(struct run *run, long operation)
{
	if (run->began && operation >= 0)
		run->began[operation] = MPI_Wtime();
}

double mean_of(const double *all, int number);
double largest_of(const double *all, int number);

#endif /* MPIBENCH_LOOPS_H */
