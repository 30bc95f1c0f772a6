/* SPDX-License-Identifier: GPL-2.0-only */
/* What was measured, apart from how it is read and how it is printed. */
#ifndef RXECPU_REPORT_H
#define RXECPU_REPORT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#include "driver.h"
#include "features.h"
#include "load.h"
#include "rxecpu.h"

#define MAX_PROGRAMS 64

/* times of one CPU, or of all */
struct times {
	int cpu;
	__u64 ns[ACCOUNTS];
};

/* one interval of the series: all CPUs together */
struct interval {
	__u64 start_ns, end_ns; /* CLOCK_MONOTONIC */
	__u64 ns[ACCOUNTS];
};

struct session {
	const char *node;
	struct driver driver;
	const char *accelerator;
	bool features[FEATURES]; /* what can be told here */
	bool per_cpu, bpf_stats, has_benchmark;
	__u64 start_ns, end_ns; /* CLOCK_MONOTONIC */
	__u64 start_wall_ns;	/* CLOCK_REALTIME */
	int ncpus;
	struct times *cpus;	 /* since the start */
	struct interval *series; /* NULL: no intervals were asked for */
	int intervals;
	double event_ns; /* what one event costs; NaN if it could not be measured */
	__u64 events;
	__u64 late;    /* events whose time went to the next one */
	__u64 self_ns; /* CPU time of this process meanwhile */
	struct program_stats programs[MAX_PROGRAMS];
	int nprograms;
};

extern const char *const context_names[CONTEXTS];
/* of an account; idle time is nobody's */
const char *account_owner(int account);
static inline int account_context(int account)
{
	return account / OWNERS;
}

void times_sum(const struct session *s, __u64 ns[ACCOUNTS]);
/* of `length` × CPUs, what no account has; with the rounding of a mean, so it may be below 0 */
__s64 unaccounted(const struct session *s, const __u64 ns[ACCOUNTS], __u64 length);
/* events that the kernel did not run a program for, because it was at work on that CPU */
__u64 session_missed(const struct session *s);

void print_interval(FILE *out, const struct session *s, const struct interval *interval,
		    int number);
void print_table(FILE *out, const struct session *s);
void print_json(FILE *out, const struct session *s);

#endif /* RXECPU_REPORT_H */
