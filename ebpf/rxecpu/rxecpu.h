/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What rxecpu's BPF programs and its reader agree on. */
#ifndef RXECPU_H
#define RXECPU_H

#include <linux/types.h>

/* what a CPU does; of softirqs one for each kind, in the kernel's order */
enum cpu_context {
	CONTEXT_IDLE,
	CONTEXT_USER,
	CONTEXT_SYSCALL,
	CONTEXT_FAULT,
	CONTEXT_KTHREAD,
	CONTEXT_HARDIRQ,
	CONTEXT_SOFTIRQ, /* the first */
	SOFTIRQS = 10,
	CONTEXTS = CONTEXT_SOFTIRQ + SOFTIRQS,
};

/* for whom */
enum cpu_owner { OWNER_OTHER, OWNER_BENCHMARK, OWNER_RXE, OWNER_NETWORK, OWNERS };

#define ACCOUNTS (CONTEXTS * OWNERS)

/* bits of cpu_state.task.in: code that a task is in, even while it is switched out */
#define IN_RXE	   0x01 /* the work function of rdma_rxe, or one of its functions */
#define IN_NETWORK 0x02 /* sending to or receiving from a socket */
#define IN_FAULT   0x04 /* a page fault */

/* what a CPU does at the level of tasks; goes with the task when it is switched out */
struct task_state {
	__u8 context; /* CONTEXT_IDLE, USER, SYSCALL or KTHREAD */
	__u8 owner;
	__u8 in;
	__u8 rxe_tasks; /* current runs of the driver's tasks, which nest */
};

/*
 * One CPU. The three levels (task, softirq, hard interrupt) have separate fields, so that a program
 * never writes what a program that it interrupts writes.
 */
struct cpu_state {
	__u64 last;  /* until when time is accounted */
	__u64 start; /* since when; 0: not begun */
	__u64 end;   /* of the last sample */
	__u64 late;  /* programs that were interrupted too often to account */
	struct task_state task;
	__u8 softirq;	  /* number + 1; 0: none */
	__u8 softirq_rxe; /* the driver's runs in it, as rxe_tasks */
	__u8 hardirqs;	  /* nested */
	__u8 hardirq_owner;
	__u8 frozen;
	__u8 account; /* of take_time() */
	__u64 ns[ACCOUNTS];
	__u64 stretches[ACCOUNTS]; /* how many ns is the sum of: each has one event's cost */
	__u64 sampled[ACCOUNTS];   /* the part of ns that stacks stand for */
	__u64 sample[ACCOUNTS];	   /* ns at end */
};

/* argument of the program that begins, samples and freezes a CPU */
enum sample_action { SAMPLE_BEGIN, SAMPLE_READ, SAMPLE_FREEZE };

#define MAX_COMMS  64
#define COMM_BYTES 16
#define MAX_IRQS   1024 /* network devices are recognised by interrupts below this number */

#endif /* RXECPU_H */
