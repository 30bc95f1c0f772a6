/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rxecpu --stacks: where tasks run, by samples of each CPU; where they sleep and wait, exactly, of
 * the benchmark and of tasks in the driver; and how long the driver's workers and ksoftirqd wait on
 * a run queue before they run.
 */
#ifndef STACKS_BPF_H
#define STACKS_BPF_H

#include "stacks.h"
#include "task_owner.bpf.h"

/* whether the programs and maps for stacks are there */
const volatile bool with_stacks = false;
/* and whether this window is to have them */
bool stacks_wanted = false;

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, STACK_ENTRIES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, STACK_DEPTH * sizeof(__u64));
} stack_traces SEC(".maps");

/*
 * Stacks whose place in the first table is taken. A place keeps its first stack, so that without
 * this table even the most frequent stack could lose all its samples.
 */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, STACK_ENTRIES_MORE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, STACK_DEPTH * sizeof(__u64));
} more_stack_traces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACK_SUMS);
	__type(key, struct stack_key);
	__type(value, __u64);
} stack_sums SEC(".maps");

/* by pid */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct stack_off);
} stack_offs SEC(".maps");

/* when workers were woken, by pid */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
} workers_woken SEC(".maps");

/* what the task that runs has waited for its CPU, until it is known to do the driver's work */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} waited SEC(".maps");

struct wait_sum wait_sums[WAITERS] = {};
/* stacks or sums that found no place */
__u64 stacks_lost = 0;

#define PF_WQ_WORKER 0x00000020

static __always_inline bool takes_stacks(void)
{
	return with_stacks && stacks_wanted;
}

static __always_inline bool is_ksoftirqd(const struct task_struct *task)
{
	char name[COMM_BYTES];

	return !bpf_core_read(name, sizeof(name), &task->comm) && name[0] == 'k' &&
	       name[1] == 's' && name[2] == 'o' && name[3] == 'f' && name[4] == 't' &&
	       name[5] == 'i' && name[6] == 'r' && name[7] == 'q' && name[8] == 'd';
}

/* whose waits on a run queue are summed */
static __always_inline bool is_waiter(const struct task_struct *task)
{
	return task->flags & PF_WQ_WORKER || is_ksoftirqd(task);
}

static __always_inline void stack_add(const struct stack_key *key, __u64 ns)
{
	__u64 *sum = bpf_map_lookup_elem(&stack_sums, key);

	if (!sum) {
		__u64 zero = 0;

		bpf_map_update_elem(&stack_sums, key, &zero, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&stack_sums, key);
	}
	if (sum)
		__sync_fetch_and_add(sum, ns);
	else
		__sync_fetch_and_add(&stacks_lost, 1);
}

static __always_inline __s32 stack_number(void *ctx, __u64 flags)
{
	long number = bpf_get_stackid(ctx, &stack_traces, flags);

	if (number != STACK_TAKEN)
		return number;
	number = bpf_get_stackid(ctx, &more_stack_traces, flags);
	return number < 0 ? number : number + STACK_ENTRIES;
}

static __always_inline void stack_take(void *ctx, struct stack_key *key)
{
	key->kernel = stack_number(ctx, 0);
	key->user = stack_number(ctx, BPF_F_USER_STACK);
	/* other stacks have both its places */
	if ((key->kernel < 0 && key->kernel != STACK_NONE) ||
	    (key->user < 0 && key->user != STACK_NONE))
		__sync_fetch_and_add(&stacks_lost, 1);
	key->tgid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(key->comm, sizeof(key->comm));
}

/* the timer's own interrupt is not what the CPU does */
static __always_inline __u32 interrupted_account(const struct cpu_state *cpu)
{
	return cpu->softirq ? softirq_account(cpu) : task_account(&cpu->task);
}

/*
 * A sample stands for the time of its account on this CPU since the last one there. So a timer that
 * fires late, as in emulated machines, skews no sum, and idle time and others' are in none.
 */
SEC("perf_event")
int stack_sample(struct bpf_perf_event_data *ctx)
{
	struct cpu_state *cpu = this_cpu();
	struct stack_key key = {.kind = STACK_RUNNING};
	__u32 account;
	__u64 ns;

	if (!cpu || !cpu->start || cpu->frozen)
		return 0;
	take_time(cpu);
	account = bounded(interrupted_account(cpu), 63);
	if (account / OWNERS == CONTEXT_IDLE)
		return 0;
	ns = cpu->ns[account] - cpu->sampled[account];
	if (!ns)
		return 0;
	cpu->sampled[account] += ns;
	key.account = account;
	stack_take(ctx, &key);
	stack_add(&key, ns);
	return 0;
}

static __always_inline void stack_woken(const struct task_struct *task)
{
	__u32 pid = task->pid;
	struct stack_off *off = bpf_map_lookup_elem(&stack_offs, &pid);
	__u64 now = bpf_ktime_get_ns();

	if (off && !off->woken)
		off->woken = now;
	if (is_waiter(task))
		bpf_map_update_elem(&workers_woken, &pid, &now, BPF_ANY);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(stack_wakeup, struct task_struct *task)
{
	stack_woken(task);
	return 0;
}

/* a task leaves its CPU: its state is still the CPU's; ready: it would run on */
static __always_inline void stack_leave(void *ctx, const struct cpu_state *cpu,
					const struct task_struct *task, bool ready)
{
	const struct task_state *state = &cpu->task;
	struct stack_off off = {.key.kind = STACK_BLOCKED};
	__u64 now = bpf_ktime_get_ns();
	__u32 pid = task->pid;

	if (!pid || task->__state & TASK_DEAD)
		return;
	if (is_waiter(task)) {
		/* a wake-up while it ran was none */
		if (ready)
			bpf_map_update_elem(&workers_woken, &pid, &now, BPF_ANY);
		else
			bpf_map_delete_elem(&workers_woken, &pid);
	}
	if (!(state->owner == OWNER_BENCHMARK || state->in & IN_RXE || state->rxe_tasks))
		return;
	off.key.account = task_account(state);
	stack_take(ctx, &off.key);
	off.since = now;
	if (ready)
		off.woken = now;
	if (bpf_map_update_elem(&stack_offs, &pid, &off, BPF_ANY))
		__sync_fetch_and_add(&stacks_lost, 1);
}

static __always_inline void stack_return(const struct task_struct *task)
{
	__u32 zero = 0, pid = task->pid;
	struct stack_off *off = bpf_map_lookup_elem(&stack_offs, &pid);
	__u64 now = bpf_ktime_get_ns();
	__u64 *woken = bpf_map_lookup_elem(&workers_woken, &pid);
	__u64 *wait = bpf_map_lookup_elem(&waited, &zero);

	if (wait)
		*wait = woken ? now - *woken : 0;
	if (woken)
		bpf_map_delete_elem(&workers_woken, &pid);
	if (!off)
		return;
	if (!off->woken)
		off->woken = now; /* we began to watch after its wake-up */
	if (off->woken > off->since)
		stack_add(&off->key, off->woken - off->since);
	off->key.kind = STACK_RUNNABLE;
	if (now > off->woken)
		stack_add(&off->key, now - off->woken);
	bpf_map_delete_elem(&stack_offs, &pid);
}

/* the task that runs does such work: so its wait was for that */
static __always_inline void wait_was_for(enum waiter waiter)
{
	struct wait_sum *sum = &wait_sums[waiter];
	__u32 zero = 0;
	__u64 *wait = bpf_map_lookup_elem(&waited, &zero), ns;

	struct cpu_state *cpu = this_cpu();

	if (!wait || !*wait || !cpu || (waiter == WAITER_RXE && cpu->softirq))
		return;
	ns = *wait;
	*wait = 0;
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->sum, ns);
	if (ns > sum->max)
		sum->max = ns;
}

#endif /* STACKS_BPF_H */
