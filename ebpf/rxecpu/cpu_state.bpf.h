/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The account of a CPU: the time between two events is charged to what the CPU did before the
 * second.
 *
 * An interrupt between any two instructions of a program can run other programs on the same
 * account. So a program takes the time since `last` by compare-and-swap: if that succeeds, no event
 * happened meanwhile, and the state that it read holds for all of that time.
 */
#ifndef CPU_STATE_BPF_H
#define CPU_STATE_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "bounded.bpf.h"
#include "rxecpu.h"

/* if each try is interrupted, the time is charged to the next event's account */
#define TRIES 8

enum { SOFTIRQ_NET_TX = 2, SOFTIRQ_NET_RX = 3 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

static __always_inline struct cpu_state *this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

static __always_inline __u32 task_account(const struct task_state *task)
{
	__u32 context = task->context, owner = task->owner;

	if (context == CONTEXT_IDLE)
		return CONTEXT_IDLE * OWNERS;
	if (context == CONTEXT_USER)
		return (task->in & IN_FAULT ? CONTEXT_FAULT : CONTEXT_USER) * OWNERS + owner;
	if (task->rxe_tasks || task->in & IN_RXE)
		owner = OWNER_RXE;
	else if (task->in & IN_NETWORK)
		owner = OWNER_NETWORK;
	return context * OWNERS + owner;
}

static __always_inline __u32 softirq_account(const struct cpu_state *cpu)
{
	__u32 number = cpu->softirq - 1, owner = OWNER_OTHER;

	if (cpu->softirq_rxe)
		owner = OWNER_RXE;
	else if (number == SOFTIRQ_NET_TX || number == SOFTIRQ_NET_RX)
		owner = OWNER_NETWORK;
	return (CONTEXT_SOFTIRQ + number) * OWNERS + owner;
}

static __always_inline __u32 account_of(const struct cpu_state *cpu)
{
	if (cpu->hardirqs)
		return CONTEXT_HARDIRQ * OWNERS + cpu->hardirq_owner;
	if (cpu->softirq)
		return softirq_account(cpu);
	return task_account(&cpu->task);
}

/* false: an interrupt has come between, and accounted */
static __always_inline bool try_to_take(struct cpu_state *cpu)
{
	__u64 last = *(volatile __u64 *)&cpu->last, now;
	__u32 account;

	/*
	 * By way of memory, of whose contents the verifier knows nothing: it need not look at the
	 * rest again for each account. Who interrupts us and writes it changes `last`, too.
	 */
	*(volatile __u8 *)&cpu->account = account_of(cpu);
	account = *(volatile __u8 *)&cpu->account;
	now = bpf_ktime_get_ns();
	if (__sync_val_compare_and_swap(&cpu->last, last, now) != last)
		return false;
	account = bounded(account, 63);
	__sync_fetch_and_add(&cpu->ns[account], now - last);
	__sync_fetch_and_add(&cpu->stretches[account], 1);
	return true;
}

struct retry {
	struct cpu_state *cpu;
	bool taken;
};

static long try_again(__u32 number, struct retry *retry)
{
	retry->taken = try_to_take(retry->cpu);
	return retry->taken;
}

/* a loop in a helper: the verifier looks at it once, and this is in nearly every program */
static __noinline int take_time(struct cpu_state *cpu)
{
	struct retry retry = {.cpu = cpu, .taken = false};

	if (!cpu || try_to_take(cpu))
		return 0;
	bpf_loop(TRIES - 1, try_again, &retry, 0);
	if (!retry.taken)
		__sync_fetch_and_add(&cpu->late, 1);
	return 0;
}

/* the CPU whose state an event changes; NULL: nothing is accounted now */
static __always_inline struct cpu_state *event(void)
{
	struct cpu_state *cpu = this_cpu();

	if (!cpu || !cpu->start || cpu->frozen)
		return NULL;
	take_time(cpu);
	return cpu;
}

/* the driver's runs at the current level; the end of one that began before us is ignored */
static __always_inline void rxe_begin(void)
{
	struct cpu_state *cpu = event();

	if (!cpu)
		return;
	if (cpu->softirq)
		cpu->softirq_rxe++;
	else
		cpu->task.rxe_tasks++;
}

static __always_inline void rxe_end(void)
{
	struct cpu_state *cpu = event();

	if (!cpu)
		return;
	if (cpu->softirq) {
		if (cpu->softirq_rxe)
			cpu->softirq_rxe--;
	} else if (cpu->task.rxe_tasks) {
		cpu->task.rxe_tasks--;
	}
}

/* where no task can be in the driver: repair what a missed end has left */
static __always_inline void leave_rxe(struct cpu_state *cpu)
{
	cpu->task.in &= ~IN_RXE;
	cpu->task.rxe_tasks = 0;
}

/* code that a task enters and leaves; not for interrupts, which have their own owners */
static __always_inline void enter(__u8 code)
{
	struct cpu_state *cpu = event();

	if (cpu && !cpu->softirq)
		cpu->task.in |= code;
}

static __always_inline void leave(__u8 code)
{
	struct cpu_state *cpu = event();

	if (cpu && !cpu->softirq)
		cpu->task.in &= ~code;
}

#endif /* CPU_STATE_BPF_H */
