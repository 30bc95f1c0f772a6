/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which queue pairs belong to processes in a cgroup or network namespace, or in which of them each
 * is. A queue pair's packets are handled by any process that runs then, so its process is looked at
 * before: where it leads the queue pair out of RESET, or, of older ones, at the reader's request.
 */
#ifndef ROCELAB_QP_OWNER_BPF_H
#define ROCELAB_QP_OWNER_BPF_H

#include <bpf/bpf_tracing.h>

#include "owner_group.bpf.h"
#include "qp_owner.h"
#include "task_place.bpf.h"
#include "task_process.bpf.h"

const volatile bool filter_by_owner = false; /* by what follows */
const volatile __u64 owner_cgroup = 0;
const volatile __u32 owner_cgroup_level = 0;
const volatile __u32 owner_netns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, OWNED_QPS);
	__type(key, struct owned_qp);
	__type(value, __u8); /* the number of its owner's group */
} owned_qps SEC(".maps");

/* the processes of older queue pairs, and the number of each one's group, or OWNER_ELSEWHERE */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, OWNED_QPS);
	__type(key, __u32);
	__type(value, __u8);
} owner_pids SEC(".maps");

/* queue pairs that found no room there */
__u64 owned_lost = 0;

static __always_inline bool owner_passes(__u32 dev, __u32 qpn)
{
	struct owned_qp key = {dev, qpn};

	return !filter_by_owner || bpf_map_lookup_elem(&owned_qps, &key);
}

/* the number of its owner's group */
static __always_inline __u32 owner_of(__u32 dev, __u32 qpn)
{
	struct owned_qp key = {dev, qpn};
	__u8 *number = bpf_map_lookup_elem(&owned_qps, &key);

	return number ? *number : OWNER_UNKNOWN;
}

static __always_inline __u8 place_of(const void *task)
{
	if ((owner_cgroup && !in_cgroup(task, owner_cgroup, owner_cgroup_level)) ||
	    (owner_netns && !in_netns(task, owner_netns)) ||
	    (owner_processes[0] && !in_processes(task)))
		return OWNER_ELSEWHERE;
	return owner_by ? owner_number(task) : OWNER_UNKNOWN;
}

/* ib_qp_state and the driver's cause */
#define QP_INIT	  1
#define QP_MODIFY 0

SEC("tp_btf/rxe_qp_state")
int BPF_PROG(rxe_qp_state, __u32 dev, __u32 qpn, __u32 old, __u32 new, __u32 cause)
{
	struct owned_qp key = {dev, qpn};
	__u8 number;

	if (new != QP_INIT || cause != QP_MODIFY)
		return 0;
	number = place_of((const void *)bpf_get_current_task());
	/* another one with this number may have been there */
	if (number == OWNER_ELSEWHERE)
		bpf_map_delete_elem(&owned_qps, &key);
	else if (bpf_map_update_elem(&owned_qps, &key, &number, BPF_ANY))
		__sync_fetch_and_add(&owned_lost, 1);
	return 0;
}

struct bpf_iter__task {
	void *meta;
	const void *task;
};

/* for each task that the reader can see */
SEC("iter/task")
int owner_existing(struct bpf_iter__task *ctx)
{
	const void *task = ctx->task;
	__u8 *number;
	__u32 pid;

	if (!task)
		return 0;
	pid = task_number(task, owner_pidns);
	number = bpf_map_lookup_elem(&owner_pids, &pid);
	if (number)
		*number = place_of(task);
	return 0;
}

#endif /* ROCELAB_QP_OWNER_BPF_H */
