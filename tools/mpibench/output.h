/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What rank 0 prints: a table line by line, or one JSON document (docs/formats/mpibench.md). */
#ifndef MPIBENCH_OUTPUT_H
#define MPIBENCH_OUTPUT_H

#include "options.h"

struct output {
	const struct options *options;
	const struct placement *at;
	int rows;
};

void output_begin(struct output *output);
void output_row(struct output *output, const struct test *test, const struct run *run,
		const struct result *result);
void output_end(struct output *output);

#endif /* MPIBENCH_OUTPUT_H */
