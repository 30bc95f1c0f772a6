// SPDX-License-Identifier: GPL-2.0-only
/* The report as tables of 80 columns. */
#include "cpu_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "session_print.h"

#define RULE "--------------------------------------------------------------------------------"

static double seconds(__u64 ns)
{
	return ns / 1e9;
}

/* a share of time under emulation would be one of instructions */
static bool has_shares(const struct report *r)
{
	return strcmp(r->session.accelerator, "tcg") != 0;
}

static void print_ms(FILE *out, __u64 ns)
{
	if (ns)
		fprintf(out, " %11.3f", ns / 1e6);
	else
		fprintf(out, " %11s", "-");
}

/* and the end of the line */
static void print_share(FILE *out, const struct report *r, __u64 ns, __u64 of)
{
	if (has_shares(r))
		fprintf(out, " %6.2f%%", 100.0 * ns / of);
	fputc('\n', out);
}

static __u64 context_sum(const __u64 ns[ACCOUNTS], int context)
{
	__u64 sum = 0;

	for (int owner = 0; owner < OWNERS; owner++)
		sum += ns[context * OWNERS + owner];
	return sum;
}

static void print_busy(FILE *out, const struct report *r, const __u64 ns[ACCOUNTS], int cpus,
		       __u64 length)
{
	__u64 busy = 0;

	fprintf(out, "  %-17s", "= busy");
	for (int owner = OWNER_BENCHMARK; owner <= OWNERS; owner++) {
		__u64 sum = 0;

		for (int context = CONTEXT_USER; context < CONTEXTS; context++)
			sum += ns[context * OWNERS + owner % OWNERS];
		busy += sum;
		print_ms(out, sum);
	}
	print_ms(out, busy);
	print_share(out, r, busy, length * cpus);
}

/* cpus: that the times are of */
static void print_times(FILE *out, const struct report *r, const __u64 ns[ACCOUNTS], int cpus,
			__u64 length)
{
	fprintf(out, "  %-17s %11s %11s %11s %11s %11s%s\n", "ms", "benchmark", "rxe", "network",
		"other", "all", has_shares(r) ? "   share" : "");
	for (int context = CONTEXT_USER; context < CONTEXTS; context++) {
		__u64 sum = context_sum(ns, context);

		if (!sum)
			continue;
		fprintf(out, "  %-17s", context_names[context]);
		/* others last */
		for (int owner = OWNER_BENCHMARK; owner <= OWNERS; owner++)
			print_ms(out, ns[context * OWNERS + owner % OWNERS]);
		print_ms(out, sum);
		print_share(out, r, sum, length * cpus);
	}
	print_busy(out, r, ns, cpus, length);
	fprintf(out, "  %-17s %59.3f", "idle", context_sum(ns, CONTEXT_IDLE) / 1e6);
	print_share(out, r, context_sum(ns, CONTEXT_IDLE), length * cpus);
}

static void print_head(FILE *out, const struct report *r)
{
	fprintf(out, "\nrxecpu on %s: %.3f s, %d CPU%s, kernel %s\n", r->session.node,
		seconds(r->session.end_ns - r->session.start_ns), r->ncpus,
		r->ncpus == 1 ? "" : "s", r->session.driver.kernel);
	if (r->session.driver.version[0])
		fprintf(out, "driver: rdma_rxe %s\n", r->session.driver.version);
	for (int i = 0; i < FEATURES; i++) {
		if (!r->features[i])
			fprintf(out, "missing: %s: %s\n", feature_names[i], feature_absence[i]);
	}
	if (!r->has_benchmark)
		fprintf(out, "no benchmark was given (--pid, --comm, --cgroup, COMMAND)\n");
	if (!has_shares(r))
		fprintf(out,
			"emulated processor (TCG): the figures count its work, not real time\n");
	fprintf(out, "\n");
}

/* how long tasks were ready before they ran, which is part of the stage queue */
static void print_waits(FILE *out, const struct report *r)
{
	for (int i = 0; i < WAITERS && r->has_stacks; i++) {
		const struct wait_sum *w = &r->waits[i];

		fprintf(out, "on a run queue: %s %" PRIu64 " times", waiter_names[i],
			(uint64_t)w->count);
		if (w->count)
			fprintf(out, ", %.0f ns each, %" PRIu64 " at most",
				(double)w->sum / w->count, (uint64_t)w->max);
		fputc('\n', out);
	}
	if (r->has_stacks && r->stacks_lost)
		fprintf(out, "lost: %" PRIu64 " stacks that found no room\n",
			(uint64_t)r->stacks_lost);
}

static void print_foot(FILE *out, const struct report *r, const __u64 ns[ACCOUNTS])
{
	__u64 length = r->session.end_ns - r->session.start_ns;
	double left = unaccounted(r, ns, length);

	fprintf(out, "\n" RULE "\n");
	fprintf(out, "accounted: all but %.3f ms of %.3f ms (wall × CPUs)\n", left / 1e6,
		length / 1e6 * r->ncpus);
	fprintf(out, "own cost: %" PRIu64 " events", (uint64_t)r->events);
	if (isfinite(r->event_ns))
		fprintf(out, ", %.0f ns each without the call: %.3f ms", r->event_ns,
			r->events * r->event_ns / 1e6);
	fprintf(out, "; rxecpu itself %.3f ms\n", r->self_ns / 1e6);
	session_print_programs(out, &r->session);
	print_waits(out, r);
	fprintf(out, "lost: %" PRIu64 " events not seen, %" PRIu64 " seen late\n",
		(uint64_t)session_missed(&r->session, NULL), (uint64_t)r->late);
}

void print_interval(FILE *out, const struct report *r, const struct interval *interval, int number)
{
	fprintf(out, "\ninterval %d: %.3f to %.3f s\n", number,
		seconds(interval->start_ns - r->session.start_ns),
		seconds(interval->end_ns - r->session.start_ns));
	print_times(out, r, interval->ns, r->ncpus, interval->end_ns - interval->start_ns);
}

void print_table(FILE *out, const struct report *r)
{
	__u64 length = r->session.end_ns - r->session.start_ns;
	__u64 sum[ACCOUNTS];

	times_sum(r, sum);
	print_head(out, r);
	print_times(out, r, sum, r->ncpus, length);
	for (int i = 0; i < r->ncpus && r->per_cpu; i++) {
		fprintf(out, "\nCPU %d\n", r->cpus[i].cpu);
		print_times(out, r, r->cpus[i].ns, 1, length);
	}
	print_foot(out, r, sum);
}
