/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which queue pairs belong to processes in a cgroup or network namespace: those that are there are
 * added by the reader, new ones here, where their process leads them out of RESET.
 */
#ifndef ROCELAB_QP_OWNER_BPF_H
#define ROCELAB_QP_OWNER_BPF_H

#include <bpf/bpf_tracing.h>

#include "qp_owner.h"
#include "task_place.bpf.h"

const volatile bool filter_by_owner = false; /* by what follows */
const volatile __u64 owner_cgroup = 0;
const volatile __u32 owner_cgroup_level = 0;
const volatile __u32 owner_netns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, OWNED_QPS);
	__type(key, struct owned_qp);
	__type(value, __u8);
} owned_qps SEC(".maps");

/* queue pairs that found no room there */
__u64 owned_lost = 0;

static __always_inline bool owner_passes(__u32 dev, __u32 qpn)
{
	struct owned_qp key = {dev, qpn};

	return !filter_by_owner || bpf_map_lookup_elem(&owned_qps, &key);
}

/* ib_qp_state and the driver's cause */
#define QP_INIT	  1
#define QP_MODIFY 0

SEC("tp_btf/rxe_qp_state")
int BPF_PROG(rxe_qp_state, __u32 dev, __u32 qpn, __u32 old, __u32 new, __u32 cause)
{
	const void *task = (const void *)bpf_get_current_task();
	struct owned_qp key = {dev, qpn};
	__u8 one = 1;

	if (new != QP_INIT || cause != QP_MODIFY)
		return 0;
	if ((!owner_cgroup || in_cgroup(task, owner_cgroup, owner_cgroup_level)) &&
	    (!owner_netns || in_netns(task, owner_netns))) {
		if (bpf_map_update_elem(&owned_qps, &key, &one, BPF_ANY))
			__sync_fetch_and_add(&owned_lost, 1);
	} else {
		bpf_map_delete_elem(&owned_qps, &key); /* of another one with this number */
	}
	return 0;
}

#endif /* ROCELAB_QP_OWNER_BPF_H */
