// SPDX-License-Identifier: GPL-2.0-or-later
#include "output.h"

#include <stdio.h>
#include <string.h>

#include "cvars.h"
#include "json.h"
#include "placement.h"

#define NS 1e9

/* bytes that one `once` moves, over all pairs */
static double bytes_of(const struct output *output, const struct test *test, const struct run *run)
{
	int across, pairs = placement_pairs(output->at, test->all_pairs, &across);

	return (double)pairs * run->window * test->ways * (double)run->size;
}

/* the minimum: without warm-ups and checks with other roots */
static uint64_t times_done(const struct result *result)
{
	return (uint64_t)result->counts.trials * (uint64_t)result->counts.iterations + 1;
}

static void begin_json(const struct output *output)
{
	const struct placement *at = output->at;
	char library[MPI_MAX_LIBRARY_VERSION_STRING];
	int length;

	MPI_Get_library_version(library, &length);
	printf("{\"schema\":\"rocelab.mpibench/1\",\"version\":\"" BENCHMARK_VERSION "\",\"mpi\":");
	json_string(stdout, library);
	printf(",\"method\":\"%s\",\"timer_ns\":%.0f,\"ranks\":%d,\"nodes\":[",
	       output->options->method->name, MPI_Wtick() * NS, at->ranks);
	for (int node = 0; node < at->nodes; node++) {
		printf("%s{\"name\":", node ? "," : "");
		json_string(stdout, at->name[node]);
		printf(",\"ranks\":%d}", at->on_node[node]);
	}
	printf("],\"cvars\":");
	cvars_print(stdout);
	printf(",\"results\":[");
}

/* from the begin of each operation to that of the next, first trial */
static void each_json(const struct result *result)
{
	printf(",\"each_ns\":[");
	for (long i = 1; i < result->stamped; i++)
		printf("%s%.0f", i > 1 ? "," : "", (result->began[i] - result->began[i - 1]) * NS);
	putchar(']');
}

static void row_json(struct output *output, const struct test *test, const struct run *run,
		     const struct result *result)
{
	struct floor floor = test->floor(run);
	uint64_t done = times_done(result);

	printf("%s{\"test\":\"%s\",\"size\":%zu,\"iterations\":%ld,\"warmup\":%ld",
	       output->rows ? "," : "", test->name, run->size, result->counts.iterations,
	       result->counts.warmup);
	if (test->windows)
		printf(",\"window\":%d", run->window);
	if (test->quantity == BANDWIDTH) {
		double bandwidth = bytes_of(output, test, run) / result->seconds;
		double messages =
			bytes_of(output, test, &(struct run){.window = run->window, .size = 1});

		printf(",\"bandwidth\":%.9g,\"message_rate\":%.9g", bandwidth,
		       messages / result->seconds);
	} else {
		printf(",\"latency_ns\":%.9g", result->seconds / test->ways * NS);
	}
	if (test->shape == COLLECTIVE)
		printf(",\"ranks_ns\":{\"min\":%.9g,\"mean\":%.9g,\"max\":%.9g}",
		       result->fastest * NS, result->mean * NS, result->slowest * NS);
	printf(",\"trials_ns\":[");
	for (int i = 0; i < result->counts.trials; i++)
		printf("%s%.9g", i ? "," : "", result->trial[i] / test->ways * NS);
	putchar(']');
	if (result->began)
		each_json(result);
	printf(",\"across\":{\"bytes\":%llu,\"messages\":%llu}}",
	       (unsigned long long)(done * floor.bytes),
	       (unsigned long long)(done * floor.messages));
}

static void row_text(struct output *output, const struct test *test, const struct run *run,
		     const struct result *result)
{
	if (!output->rows)
		printf("# mpibench " BENCHMARK_VERSION ", method %s, %d ranks on %d node%s\n"
		       "%-15s %10s %10s %14s %14s\n",
		       output->options->method->name, output->at->ranks, output->at->nodes,
		       output->at->nodes > 1 ? "s" : "", "test", "bytes", "times", "µs", "MB/s");
	printf("%-15s %10zu %10ld ", test->name, run->size, result->counts.iterations);
	if (test->quantity == BANDWIDTH)
		printf("%14s %14.3f\n", "", bytes_of(output, test, run) / result->seconds * 1e-6);
	else
		printf("%14.2f\n", result->seconds / test->ways * 1e6);
	fflush(stdout);
}

void output_begin(struct output *output)
{
	if (output->options->json)
		begin_json(output);
}

void output_row(struct output *output, const struct test *test, const struct run *run,
		const struct result *result)
{
	if (output->options->json)
		row_json(output, test, run, result);
	else
		row_text(output, test, run, result);
	output->rows++;
}

void output_end(struct output *output)
{
	if (output->options->json)
		puts("]}");
}
