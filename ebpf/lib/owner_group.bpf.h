/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers the cgroup or network namespace of a task. This runs for new queue pairs, not for
 * packets. */
#ifndef ROCELAB_OWNER_GROUP_BPF_H
#define ROCELAB_OWNER_GROUP_BPF_H

#include "owner_group.h"
#include "task_place.bpf.h"

const volatile __u32 owner_by = OWNER_BY_NONE; /* enum owner_by */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OWNER_GROUPS);
	__type(key, __u64); /* owner_place.id */
	__type(value, __u8);
} owner_numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OWNER_GROUPS);
	__type(key, __u32);
	__type(value, struct owner_place);
} owner_places SEC(".maps");

__u32 owners_used = OWNER_FIRST;
/* queue pairs that found no number */
__u64 owners_beyond = 0;

static __always_inline void describe_cgroup(struct owner_place *place, const void *task)
{
	const struct cgroup *group = cgroup_of(task);
	int level = BPF_CORE_READ(group, level);
	int first = level > OWNER_LEVELS ? level - OWNER_LEVELS : 0;

	place->level = level;
#pragma unroll
	for (int i = 0; i < OWNER_LEVELS; i++) {
		const struct cgroup *above = cgroup_above(group, first + i + 1);

		if (first + i >= level)
			break;
		bpf_probe_read_kernel_str(place->name[i], OWNER_NAME,
					  BPF_CORE_READ(above, kn, name));
	}
}

static __always_inline __u64 owner_id(const void *task)
{
	const struct net *net = netns_of(task);
	const struct cgroup *group = cgroup_of(task);

	if (owner_by == OWNER_BY_CGROUP)
		return BPF_CORE_READ(group, kn, id);
	return bpf_core_field_exists(net->net_cookie) ? BPF_CORE_READ(net, net_cookie)
						      : BPF_CORE_READ(net, ns.inum);
}

static __noinline __u32 owner_claim(const void *task, __u64 id)
{
	const struct net *net = netns_of(task);
	struct owner_place *place;
	__u32 number;
	__u8 *found, mine;

	if (owners_used >= OWNER_BEYOND ||
	    (number = __sync_fetch_and_add(&owners_used, 1)) >= OWNER_BEYOND)
		return OWNER_BEYOND;
	place = bpf_map_lookup_elem(&owner_places, &number);
	if (!place)
		return OWNER_BEYOND;
	if (owner_by == OWNER_BY_CGROUP)
		describe_cgroup(place, task);
	else
		place->inode = BPF_CORE_READ(net, ns.inum);
	/* last, because the reader may look now */
	__sync_val_compare_and_swap(&place->id, 0, id);
	/* a race for one place wastes a number, nothing else */
	mine = number;
	if (!bpf_map_update_elem(&owner_numbers, &id, &mine, BPF_NOEXIST))
		return number;
	found = bpf_map_lookup_elem(&owner_numbers, &id);
	return found ? *found : OWNER_BEYOND;
}

/* the number of the task's place */
static __always_inline __u32 owner_number(const void *task)
{
	__u64 id = owner_id(task);
	__u8 *found;
	__u32 number;

	if (!id)
		return OWNER_UNKNOWN; /* it is exiting, and has no namespace any more */
	found = bpf_map_lookup_elem(&owner_numbers, &id);
	number = found ? *found : owner_claim(task, id);
	if (number == OWNER_BEYOND)
		__sync_fetch_and_add(&owners_beyond, 1);
	return number;
}

#endif /* ROCELAB_OWNER_GROUP_BPF_H */
