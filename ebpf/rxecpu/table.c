// SPDX-License-Identifier: GPL-2.0-only
/* The report as tables of 80 columns. */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define RULE "--------------------------------------------------------------------------------"

static double seconds(__u64 ns)
{
	return ns / 1e9;
}

/* a share of time under emulation would be one of instructions */
static bool has_shares(const struct session *s)
{
	return strcmp(s->accelerator, "tcg") != 0;
}

static void print_ms(FILE *out, __u64 ns)
{
	if (ns)
		fprintf(out, " %11.3f", ns / 1e6);
	else
		fprintf(out, " %11s", "-");
}

/* and the end of the line */
static void print_share(FILE *out, const struct session *s, __u64 ns, __u64 of)
{
	if (has_shares(s))
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

static void print_busy(FILE *out, const struct session *s, const __u64 ns[ACCOUNTS], int cpus,
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
	print_share(out, s, busy, length * cpus);
}

/* cpus: that the times are of */
static void print_times(FILE *out, const struct session *s, const __u64 ns[ACCOUNTS], int cpus,
			__u64 length)
{
	fprintf(out, "  %-17s %11s %11s %11s %11s %11s%s\n", "ms", "benchmark", "rxe", "network",
		"other", "all", has_shares(s) ? "   share" : "");
	for (int context = CONTEXT_USER; context < CONTEXTS; context++) {
		__u64 sum = context_sum(ns, context);

		if (!sum)
			continue;
		fprintf(out, "  %-17s", context_names[context]);
		/* others last */
		for (int owner = OWNER_BENCHMARK; owner <= OWNERS; owner++)
			print_ms(out, ns[context * OWNERS + owner % OWNERS]);
		print_ms(out, sum);
		print_share(out, s, sum, length * cpus);
	}
	print_busy(out, s, ns, cpus, length);
	fprintf(out, "  %-17s %59.3f", "idle", context_sum(ns, CONTEXT_IDLE) / 1e6);
	print_share(out, s, context_sum(ns, CONTEXT_IDLE), length * cpus);
}

static void print_head(FILE *out, const struct session *s)
{
	fprintf(out, "\nrxecpu on %s: %.3f s, %d CPU%s, kernel %s\n", s->node,
		seconds(s->end_ns - s->start_ns), s->ncpus, s->ncpus == 1 ? "" : "s",
		s->driver.kernel);
	if (s->driver.version[0])
		fprintf(out, "driver: rdma_rxe %s\n", s->driver.version);
	for (int i = 0; i < FEATURES; i++) {
		if (!s->features[i])
			fprintf(out, "missing: %s: %s\n", feature_names[i], feature_absence[i]);
	}
	if (!s->has_benchmark)
		fprintf(out, "no benchmark was named (--pid, --comm, --cgroup, COMMAND)\n");
	if (!has_shares(s))
		fprintf(out,
			"emulated processor (TCG): the figures count its work, not real time\n");
	fprintf(out, "\n");
}

static void print_foot(FILE *out, const struct session *s, const __u64 ns[ACCOUNTS])
{
	__u64 length = s->end_ns - s->start_ns;
	double left = unaccounted(s, ns, length);

	fprintf(out, "\n" RULE "\n");
	fprintf(out, "accounted: all but %.3f ms of %.3f ms (wall × CPUs)\n", left / 1e6,
		length / 1e6 * s->ncpus);
	fprintf(out, "own cost: %" PRIu64 " events", (uint64_t)s->events);
	if (isfinite(s->event_ns))
		fprintf(out, ", %.0f ns each without the way to it: %.3f ms", s->event_ns,
			s->events * s->event_ns / 1e6);
	fprintf(out, "; rxecpu itself %.3f ms\n", s->self_ns / 1e6);
	for (int i = 0; i < s->nprograms && s->bpf_stats; i++) {
		const struct program_stats *p = &s->programs[i];

		if (p->runs)
			fprintf(out, "  %-28s %12" PRIu64 " runs, %8.0f ns each\n", p->name,
				(uint64_t)p->runs, (double)p->run_ns / p->runs);
	}
	fprintf(out, "lost: %" PRIu64 " events not seen, %" PRIu64 " seen late\n",
		(uint64_t)session_missed(s), (uint64_t)s->late);
}

void print_interval(FILE *out, const struct session *s, const struct interval *interval, int number)
{
	fprintf(out, "\ninterval %d: %.3f to %.3f s\n", number,
		seconds(interval->start_ns - s->start_ns), seconds(interval->end_ns - s->start_ns));
	print_times(out, s, interval->ns, s->ncpus, interval->end_ns - interval->start_ns);
}

void print_table(FILE *out, const struct session *s)
{
	__u64 length = s->end_ns - s->start_ns;
	__u64 sum[ACCOUNTS];

	times_sum(s, sum);
	print_head(out, s);
	print_times(out, s, sum, s->ncpus, length);
	for (int i = 0; i < s->ncpus && s->per_cpu; i++) {
		fprintf(out, "\nCPU %d\n", s->cpus[i].cpu);
		print_times(out, s, s->cpus[i].ns, 1, length);
	}
	print_foot(out, s, sum);
}
