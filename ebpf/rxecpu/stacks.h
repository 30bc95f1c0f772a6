/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks with the time that was spent in them, as BPF programs and reader agree. */
#ifndef STACKS_H
#define STACKS_H

#include <linux/types.h>

#include "rxecpu.h"

#define STACK_DEPTH   127 /* what the kernel keeps */
#define STACK_ENTRIES 16384
/* not as many: what shares a place in the first table may not share one in the second */
#define STACK_ENTRIES_MORE 32768
#define STACK_SUMS	   65536

/* there is none: -EFAULT of bpf_get_stackid() */
#define STACK_NONE (-14)
/* another one has its place: -EEXIST */
#define STACK_TAKEN (-17)

enum stack_kind {
	STACK_RUNNING,	/* sampled */
	STACK_BLOCKED,	/* from when the task went to sleep until it was woken */
	STACK_RUNNABLE, /* on a run queue, but not running */
	STACK_KINDS
};

struct stack_key {
	/* number of a stack, from STACK_ENTRIES on in the second table; STACK_NONE; < 0: lost */
	__s32 kernel, user;
	__u32 tgid;
	__u16 kind;
	__u16 account; /* where this is, and for whom */
	char comm[COMM_BYTES];
};

/* a task that is off its CPU */
struct stack_off {
	__u64 since;
	__u64 woken; /* 0: not yet */
	struct stack_key key;
};

/* who waits on a run queue while a packet waits in the stage queue, or before its arrival */
enum waiter { WAITER_RXE, WAITER_KSOFTIRQD, WAITERS };

struct wait_sum {
	__u64 count, sum, max; /* ns */
};

#endif /* STACKS_H */
