/* SPDX-License-Identifier: GPL-2.0-only */
/* What was measured, apart from how it is read and how it is printed. */
#ifndef CPU_REPORT_H
#define CPU_REPORT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#include "kernel_features.h"
#include "rxecpu.h"
#include "session.h"
#include "stacks.h"

/* times of one CPU, or of all */
struct times {
	int cpu;
	__u64 ns[ACCOUNTS];
	__u64 stretches[ACCOUNTS];
};

/* one interval of the series: all CPUs together */
struct interval {
	__u64 start_ns, end_ns; /* CLOCK_MONOTONIC */
	__u64 ns[ACCOUNTS];
};

struct report {
	struct session session;
	bool features[FEATURES]; /* what can be measured here */
	bool per_cpu, has_benchmark;
	int ncpus;
	struct times *cpus;	 /* since the start */
	struct interval *series; /* NULL: no intervals were asked for */
	int intervals;
	double event_ns; /* cost of one event; NaN if it cannot be measured */
	__u64 events;
	__u64 late; /* events whose time was charged to the next one */
	bool has_stacks;
	struct wait_sum waits[WAITERS];
	__u64 stacks_lost;
	__u64 unsampled[ACCOUNTS]; /* busy time that no sample stands for */
	__u64 self_ns;		   /* CPU time of this process meanwhile */
};

extern const char *const context_names[CONTEXTS];
/* of an account; idle time is nobody's */
const char *account_owner(int account);
static inline int account_context(int account)
{
	return account / OWNERS;
}

extern const char *const waiter_names[WAITERS];

void times_sum(const struct report *r, __u64 ns[ACCOUNTS]);
/* the part of `length` × CPUs in no account; a mean's rounding can make it negative */
__s64 unaccounted(const struct report *r, const __u64 ns[ACCOUNTS], __u64 length);
void print_interval(FILE *out, const struct report *r, const struct interval *interval, int number);
void print_table(FILE *out, const struct report *r);
void print_json(FILE *out, const struct report *r);

#endif /* CPU_REPORT_H */
