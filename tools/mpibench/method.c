// SPDX-License-Identifier: GPL-2.0-or-later
#include "method.h"

#include <stdlib.h>
#include <string.h>

#include "loops.h"
#include "memory.h"

const char METHOD_NAMES[] = "osu, imb, skampi";

const struct method *method_find(const char *name)
{
	static const struct method *const all[] = {&OSU, &IMB, &SKAMPI};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

double mean_of(const double *all, int number)
{
	double sum = 0;

	for (int i = 0; i < number; i++)
		sum += all[i];
	return sum / number;
}

double largest_of(const double *all, int number)
{
	double largest = all[0];

	for (int i = 1; i < number; i++)
		if (all[i] > largest)
			largest = all[i];
	return largest;
}

static double smallest_of(const double *all, int number)
{
	double smallest = all[0];

	for (int i = 1; i < number; i++)
		if (all[i] < smallest)
			smallest = all[i];
	return smallest;
}

/*
 * The ranks whose times count: all ranks of a collective; the rank that starts a ping-pong or a
 * stream; with several pairs the senders, or both ends if they are equal.
 */
static int taking_part(const struct test *test, int ranks)
{
	if (test->shape == COLLECTIVE)
		return ranks;
	if (!test->all_pairs)
		return 1;
	return test->quantity == LATENCY ? ranks / 2 * 2 : ranks / 2;
}

void method_run(const struct method *method, const struct test *test, struct run *run,
		const struct counts *asked, bool each, struct result *result)
{
	double mine, *all = memory_get(run->at->ranks, sizeof(*all));
	int number = taking_part(test, run->at->ranks);
	struct counts counts = {};

	method->defaults(test, run->size, &counts);
	counts.trials = asked->trials;
	if (asked->iterations >= 0) {
		counts.iterations = asked->iterations;
		/* roughly the suites' proportion; at least one */
		if (counts.warmup)
			counts.warmup = (asked->iterations + 9) / 10;
	}
	if (asked->warmup >= 0)
		counts.warmup = asked->warmup;

	result->seconds = 0;
	result->began = NULL;
	if (each && test->shape == PAIRS && !run->at->rank)
		result->began = memory_get(counts.iterations, sizeof(*result->began));
	run->began = result->began;
	for (int i = 0; i < counts.trials; i++) {
		result->counts = counts;
		mine = method->measure(test, run, &result->counts);
		if (!i)
			result->stamped = result->counts.iterations;
		run->began = NULL;
		MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		if (run->at->rank)
			continue;
		result->trial[i] = method->combine(test, all, number);
		result->seconds += result->trial[i] / counts.trials;
		if (!i) {
			result->fastest = smallest_of(all, number);
			result->mean = mean_of(all, number);
			result->slowest = largest_of(all, number);
		}
	}
	free(all);
}
