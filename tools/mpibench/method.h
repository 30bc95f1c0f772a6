/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How often an operation runs and which of its times count: the loops of the suites that mpibench
 * replaces, as documented by them (docs/formats/mpibench.md cites the sources).
 */
#ifndef MPIBENCH_METHOD_H
#define MPIBENCH_METHOD_H

#include "bench.h"

#define MAX_TRIALS 64

struct counts {
	long iterations, warmup; /* below 0: the method's own */
	int trials;
};

struct result {
	struct counts counts;	       /* what was done: SKaMPI's method decides while it runs */
	double seconds;		       /* one `once` as the suite reports it; mean of the trials */
	double fastest, mean, slowest; /* of the ranks that take part, first trial */
	double trial[MAX_TRIALS];      /* seconds, each */
	double *began;		       /* [stamped]: operations of the first trial, or NULL */
	long stamped;
};

struct method {
	const char *name;
	int window;
	void (*defaults)(const struct test *test, size_t size, struct counts *counts);
	/* seconds that one `once` took on this rank, on average over counts->iterations */
	double (*measure)(const struct test *test, struct run *run, struct counts *counts);
	/* the value to report, from the seconds of the ranks that take part (`all`) */
	double (*combine)(const struct test *test, const double *all, int number);
};

const struct method *method_find(const char *name);
extern const char METHOD_NAMES[];

/*
 * Collective; the result is good at rank 0. With `each` it has the begins of a pair test's
 * operations; free(3) them.
 */
void method_run(const struct method *method, const struct test *test, struct run *run,
		const struct counts *asked, bool each, struct result *result);

#endif /* MPIBENCH_METHOD_H */
