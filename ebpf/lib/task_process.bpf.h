/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether a task is of some processes, or a descendant of one. This runs for new queue pairs and
 * for each task at the start, not for packets. */
#ifndef ROCELAB_TASK_PROCESS_BPF_H
#define ROCELAB_TASK_PROCESS_BPF_H

#include "task_place.bpf.h"
#include "task_place.h"

/* process IDs as many as are not 0, and the inode of the PID namespace in which they are */
const volatile __u32 owner_processes[PLACE_PIDS] = {};
const volatile __u32 owner_pidns = 0;

struct pid_namespace {
	struct ns_common ns;
} ROCELAB_CORE;

struct upid {
	int nr;
	struct pid_namespace *ns;
} ROCELAB_CORE;

struct pid {
	unsigned int level;
	struct upid numbers[];
} ROCELAB_CORE;

struct task_struct___process {
	struct pid *thread_pid;
	struct task_struct___process *group_leader, *real_parent;
} ROCELAB_CORE;

/* a kernel's limit: include/linux/pid_namespace.h */
#define MAX_PID_NS_LEVEL 32

/* the task's number (gettid) in a PID namespace, whose inode that is; 0: it has none there */
static __noinline __u32 task_number(const void *task, __u32 pidns)
{
	const struct pid *pid =
		BPF_CORE_READ((const struct task_struct___process *)task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);

	for (__u32 i = 0; i <= MAX_PID_NS_LEVEL && i <= level; i++) {
		const struct upid *upid = (const void *)pid +
					  bpf_core_field_offset(struct pid, numbers) +
					  i * bpf_core_type_size(struct upid);

		if (BPF_CORE_READ(upid, ns, ns.inum) == pidns)
			return BPF_CORE_READ(upid, nr);
	}
	return 0;
}

/* the task's process, or an ancestor of it, is one of those chosen */
static __always_inline bool in_processes(const void *task)
{
	const struct task_struct___process *at = task;

	for (int i = 0; i < PLACE_ANCESTORS && at; i++) {
		__u32 number;

		at = BPF_CORE_READ(at, group_leader);
		number = task_number(at, owner_pidns);
		if (!number)
			return false; /* the namespace's first has its parent elsewhere */
		for (int j = 0; j < PLACE_PIDS && owner_processes[j]; j++)
			if (owner_processes[j] == number)
				return true;
		at = BPF_CORE_READ(at, real_parent);
	}
	return false;
}

#endif /* ROCELAB_TASK_PROCESS_BPF_H */
