/* SPDX-License-Identifier: GPL-2.0-only */
/* The owner of a task, and its state while it is switched out. */
#ifndef TASK_OWNER_BPF_H
#define TASK_OWNER_BPF_H

#include <bpf/bpf_core_read.h>

#include "rxe_record.h"
#include "cpu_state.bpf.h"
#include "task_place.bpf.h"

struct task_struct {
	int pid;
	int tgid;
	unsigned int flags;
	unsigned int __state;
	char comm[COMM_BYTES];
} ROCELAB_CORE;

#define PF_KTHREAD   0x00200000
#define PF_IO_WORKER 0x00000010
#define TASK_DEAD    0x00000080

/* the task's current or last system call; negative if it entered the kernel otherwise */
struct pt_regs___x86 {
	unsigned long orig_ax;
} ROCELAB_CORE;
struct pt_regs___arm64 {
	int syscallno;
} ROCELAB_CORE;

/* the benchmark, as named on the command line: constants at load time */
const volatile bool by_pid = false;
const volatile __u32 comms = 0;
const volatile __u64 comm[MAX_COMMS][COMM_BYTES / 8] = {};
const volatile __u64 cgroup_id = 0; /* 0: none */
const volatile __u32 cgroup_level = 0;

/* processes given, and their children; by tgid */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u8);
} processes SEC(".maps");

/* tasks that were switched out of code that their registers do not show; by pid */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct task_state);
} switched_out SEC(".maps");

static __always_inline bool has_comm(const struct task_struct *task)
{
	__u64 name[COMM_BYTES / 8];

	if (bpf_core_read(name, sizeof(name), &task->comm))
		return false;
	for (__u32 i = 0; i < MAX_COMMS && i < comms; i++) {
		if (name[0] == comm[i][0] && name[1] == comm[i][1])
			return true;
	}
	return false;
}

static __always_inline __u8 owner_of(const struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if ((by_pid && bpf_map_lookup_elem(&processes, &tgid)) || (comms && has_comm(task)) ||
	    (cgroup_id && in_cgroup(task, cgroup_id, cgroup_level)))
		return OWNER_BENCHMARK;
	return OWNER_OTHER;
}

/* "napi/eth0-8193": a device's receive work in a thread */
static __always_inline bool is_napi_thread(const struct task_struct *task)
{
	char name[COMM_BYTES];

	return !bpf_core_read(name, sizeof(name), &task->comm) && name[0] == 'n' &&
	       name[1] == 'a' && name[2] == 'p' && name[3] == 'i' && name[4] == '/';
}

/* whether a user task entered the kernel by a system call; task: trusted by the verifier */
static __always_inline bool came_by_syscall(struct task_struct *task)
{
	const void *regs = (const void *)bpf_task_pt_regs((void *)task);

	if (bpf_core_field_exists(struct pt_regs___x86, orig_ax))
		return (long)BPF_CORE_READ((const struct pt_regs___x86 *)regs, orig_ax) >= 0;
	if (bpf_core_field_exists(struct pt_regs___arm64, syscallno))
		return BPF_CORE_READ((const struct pt_regs___arm64 *)regs, syscallno) >= 0;
	return false;
}

/* the state of the running task, as far as the task shows it */
static __always_inline struct task_state state_of(struct task_struct *task)
{
	struct task_state state = {};

	if (!task->pid) {
		state.context = CONTEXT_IDLE;
	} else if (task->flags & PF_KTHREAD) {
		state.context = CONTEXT_KTHREAD;
		state.owner = is_napi_thread(task) ? OWNER_NETWORK : OWNER_OTHER;
	} else {
		state.owner = owner_of(task);
		if (task->flags & PF_IO_WORKER)
			state.context = CONTEXT_KTHREAD;
		else
			state.context = came_by_syscall(task) ? CONTEXT_SYSCALL : CONTEXT_USER;
	}
	return state;
}

/* keep what state_of() could not find later; on return from a call registers still name it */
static __always_inline void keep_state(struct task_struct *task, const struct task_state *state)
{
	__u32 pid = task->pid;

	if (!pid || task->__state & TASK_DEAD)
		return;
	if (state->in || state->rxe_tasks ||
	    (state->context == CONTEXT_USER && came_by_syscall(task)))
		bpf_map_update_elem(&switched_out, &pid, state, BPF_ANY);
}

static __always_inline struct task_state resumed_state(struct task_struct *task)
{
	struct task_state state = state_of(task), *kept;
	__u32 pid = task->pid;

	kept = pid ? bpf_map_lookup_elem(&switched_out, &pid) : NULL;
	if (kept) {
		state.context = kept->context;
		state.in = kept->in;
		state.rxe_tasks = kept->rxe_tasks;
		bpf_map_delete_elem(&switched_out, &pid);
	}
	return state;
}

#endif /* TASK_OWNER_BPF_H */
