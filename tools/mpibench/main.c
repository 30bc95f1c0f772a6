// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mpibench - MPI benchmarks by the methods of OSU, Intel and SKaMPI.
 *
 * It exists because no distribution has those suites. Many tests run per mpirun, and each test's
 * data are checked for every size and root before it is timed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"
#include "output.h"
#include "placement.h"

#define WRONG_DATA 1
#define USAGE	   2

/* Whether all ranks received correct data with this root; ranks that failed report it. */
static bool right(const struct test *test, struct run *run)
{
	size_t first = 0, wrong = test->check(run, &first);
	unsigned long long mine = wrong, all;

	if (wrong)
		fprintf(stderr,
			"mpibench: wrong data: %s, %zu bytes, %d ranks, root %d: rank %d has %zu "
			"wrong bytes, the first at %zu\n",
			test->name, run->size, run->at->ranks, run->root, run->at->rank, wrong,
			first);
	MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
	return !all;
}

static bool right_for_all_roots(const struct test *test, struct run *run)
{
	bool good = true;

	for (run->root = 0; run->root < (test->rooted ? run->at->ranks : 1); run->root++)
		good = right(test, run) && good;
	run->root = 0;
	return good;
}

static bool measure(const struct options *options, const struct placement *at,
		    struct output *output)
{
	struct run run = {.at = at, .window = options->window};
	size_t largest = ELEMENT; /* a warm-up may be larger than a message of one byte */
	bool good = true;

	for (int i = 0; i < options->number_of_sizes; i++)
		if (options->sizes[i] > largest)
			largest = options->sizes[i];
	run.send = memory_get_pages(largest * (size_t)at->ranks);
	run.recv = memory_get_pages(largest * (size_t)at->ranks);
	run.requests = memory_get(2 * (size_t)options->window, sizeof(*run.requests));
	run.counts = memory_get(at->ranks, sizeof(*run.counts));
	for (int t = 0; t < options->number_of_tests && good; t++) {
		const struct test *test = options->tests[t];
		int sizes = test->sized ? options->number_of_sizes : 1;

		for (int s = 0; s < sizes && good; s++) {
			struct result result;

			run.size = test->sized ? options->sizes[s] : 0;
			good = right_for_all_roots(test, &run);
			if (!good)
				break;
			method_run(options->method, test, &run, &options->counts, options->each,
				   &result);
			if (!at->rank)
				output_row(output, test, &run, &result);
			free(result.began);
		}
	}
	free(run.send);
	free(run.recv);
	free(run.requests);
	free(run.counts);
	return good;
}

static int refuse_alone(const struct options *options, const struct placement *at)
{
	for (int i = 0; i < options->number_of_tests; i++)
		if (options->tests[i]->shape == PAIRS && at->ranks < 2) {
			if (!at->rank)
				fprintf(stderr,
					"mpibench: %s needs two ranks\n"
					"  what to do: mpirun -n 2 …\n",
					options->tests[i]->name);
			return USAGE;
		}
	return GO_ON;
}

int main(int argc, char **argv)
{
	struct placement at;
	struct options options;
	struct output output = {.options = &options, .at = &at};
	int status;

	MPI_Init(&argc, &argv);
	placement_find(&at);
	status = options_read(&options, argc, argv, !at.rank);
	if (status == GO_ON)
		status = refuse_alone(&options, &at);
	if (status == GO_ON) {
		if (!at.rank)
			output_begin(&output);
		status = measure(&options, &at, &output) ? 0 : WRONG_DATA;
		if (!at.rank)
			output_end(&output);
	}
	placement_free(&at);
	MPI_Finalize();
	return status;
}
