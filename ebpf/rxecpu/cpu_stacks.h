/* SPDX-License-Identifier: GPL-2.0-only */
/* Sample each CPU's stack, and write all stacks with their times. */
#ifndef CPU_STACKS_H
#define CPU_STACKS_H

#include "cpu_report.h"
#include "stacks.h"
#include "user_code.h"

struct rxecpu_bpf;
struct bpf_link;

struct stacks {
	struct rxecpu_bpf *skel;
	struct bpf_link **links; /* one a CPU */
	int ncpus;
	bool used; /* by a window before */
	struct user_code code;
};

/* Functions that return int return 0, or print the error and return the exit status. */

/* Whether this machine keeps whole stacks. */
int stacks_check(void);
/* Before loading: with programs and maps for stacks, or without. */
void stacks_choose(struct rxecpu_bpf *skel, bool wanted);
/* Before attaching: forget the window before; and whether this one is to have stacks. */
int stacks_prepare(struct stacks *s, struct rxecpu_bpf *skel, bool wanted);
/* Sample from now on; cpu: the numbers of the CPUs. */
int stacks_begin(struct stacks *s, const int *cpu, int ncpus);
/* Look at the code of processes that have been seen: it may be gone when we write. */
void stacks_look(struct stacks *s);
/*
 * Folded: "kind;context;owner;command;user frames;kernel frames microseconds". Call when the
 * accounts are frozen and the programs detached.
 */
void stacks_write(struct stacks *s, FILE *out, const struct report *r);
/* Sample no more. */
void stacks_detach(struct stacks *s);
/* What workers and ksoftirqd waited for. */
void stacks_waits(const struct stacks *s, struct wait_sum waits[WAITERS], __u64 *lost);
void stacks_end(struct stacks *s);

#endif /* CPU_STACKS_H */
