/* SPDX-License-Identifier: GPL-2.0-only */
/* Sample each CPU's stack, and write all stacks with their times. */
#ifndef CPU_STACKS_H
#define CPU_STACKS_H

#include "cpu_report.h"
#include "stacks.h"

struct rxecpu_bpf;
struct bpf_link;

/* the code of a process, as it was while it ran */
struct process_maps {
	__u32 tgid;
	char *text; /* of /proc/PID/maps */
};

struct stacks {
	struct rxecpu_bpf *skel;
	struct bpf_link **links; /* one a CPU */
	int ncpus;
	struct process_maps *processes;
	int nprocesses;
};

/* Functions that return int return 0, or print the error and return the exit status. */

/* Before loading. */
void stacks_choose(struct rxecpu_bpf *skel, bool wanted);
/* Sample from now on; cpu: the numbers of the CPUs. */
int stacks_begin(struct stacks *s, struct rxecpu_bpf *skel, const int *cpu, int ncpus);
/* Remember the code of processes that have been seen since the last look. */
void stacks_look(struct stacks *s);
/* Folded: "kind;context;owner;command;user frames;kernel frames microseconds". */
void stacks_write(struct stacks *s, FILE *out);
/* What workers and ksoftirqd waited for. */
void stacks_waits(const struct stacks *s, struct wait_sum waits[WAITERS], __u64 *lost);
void stacks_end(struct stacks *s);

#endif /* CPU_STACKS_H */
