/* SPDX-License-Identifier: GPL-2.0-only */
/* Begin, read and freeze the accounts, by a program that runs on each CPU. */
#ifndef CPU_SAMPLER_H
#define CPU_SAMPLER_H

#include "cpu_report.h"

struct rxecpu_bpf;

struct sampler {
	struct rxecpu_bpf *skel;
	int ncpus; /* that were online when they were listed */
	int *cpu;  /* their numbers */
	int possible;
	struct cpu_state *states; /* of all possible CPUs, as last read */
};

/* Functions return 0 or a negative errno; -ENXIO: a CPU has gone offline. */
int sampler_open(struct sampler *s, struct rxecpu_bpf *skel);
void sampler_close(struct sampler *s);
/* The CPUs that are online now. */
int sampler_list(struct sampler *s);
/* Forget what was accounted, and begin on each CPU. */
int sampler_begin(struct sampler *s);
/* Bring every account up to now; `last`: nothing is accounted after that. */
int sampler_take(struct sampler *s, bool last);
/* What the last sampler_take() read; times: one per CPU. */
void sampler_times(const struct sampler *s, struct times *times);
/* Busy time, of all CPUs together, that no stack stands for. */
void sampler_unsampled(const struct sampler *s, __u64 ns[ACCOUNTS]);
/* Begin and end of what was read, CLOCK_MONOTONIC: means over the CPUs, which are read in turn. */
void sampler_window(const struct sampler *s, __u64 *start_ns, __u64 *end_ns);
void sampler_events(const struct sampler *s, __u64 *events, __u64 *late);

#endif /* CPU_SAMPLER_H */
