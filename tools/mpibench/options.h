/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef MPIBENCH_OPTIONS_H
#define MPIBENCH_OPTIONS_H

#include "method.h"

#define MAX_SIZES 64
#define MAX_TESTS 32

struct options {
	const struct test *tests[MAX_TESTS];
	int number_of_tests;
	size_t sizes[MAX_SIZES];
	int number_of_sizes;
	const struct method *method;
	struct counts counts;
	int window;
	bool json;
	bool each; /* JSON: the time of each operation, too */
};

enum { GO_ON = -1 };

/* GO_ON, or the status to exit with; only the rank that `speaks` prints why */
int options_read(struct options *options, int argc, char **argv, bool speaks);

#endif /* MPIBENCH_OPTIONS_H */
