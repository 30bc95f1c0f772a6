/* SPDX-License-Identifier: GPL-2.0-only */
/* In which cgroup (version 2) and network namespace a task is. */
#ifndef ROCELAB_TASK_PLACE_BPF_H
#define ROCELAB_TASK_PLACE_BPF_H

#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "rxe_record.h"

struct kernfs_node {
	__u64 id;
	const char *name;
} ROCELAB_CORE;

struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[];
} ROCELAB_CORE;

struct css_set {
	struct cgroup *dfl_cgrp;
} ROCELAB_CORE;

struct ns_common {
	unsigned int inum;
} ROCELAB_CORE;

struct net {
	struct ns_common ns;
	__u64 net_cookie;
} ROCELAB_CORE;

struct nsproxy {
	struct net *net_ns;
} ROCELAB_CORE;

struct task_struct___place {
	struct css_set *cgroups;
	struct nsproxy *nsproxy;
} ROCELAB_CORE;

static __always_inline const struct cgroup *cgroup_of(const void *task)
{
	return BPF_CORE_READ((const struct task_struct___place *)task, cgroups, dfl_cgrp);
}

/* the one that is `at` levels below the hierarchy's root, above the group or the group itself */
static __always_inline const struct cgroup *cgroup_above(const struct cgroup *group, int at)
{
	const struct cgroup *ancestor = NULL;
	const void *place = (const void *)group + bpf_core_field_offset(struct cgroup, ancestors) +
			    at * sizeof(ancestor);

	return bpf_probe_read_kernel(&ancestor, sizeof(ancestor), place) ? NULL : ancestor;
}

/* in this cgroup, which is `at` levels below the hierarchy's root, or below it */
static __always_inline bool in_cgroup(const void *task, __u64 id, int at)
{
	const struct cgroup *group = cgroup_of(task), *above;

	if (!group || BPF_CORE_READ(group, level) < at)
		return false;
	above = cgroup_above(group, at);
	return BPF_CORE_READ(above, kn, id) == id;
}

static __always_inline const struct net *netns_of(const void *task)
{
	return BPF_CORE_READ((const struct task_struct___place *)task, nsproxy, net_ns);
}

static __always_inline bool in_netns(const void *task, __u32 inode)
{
	const struct net *net = netns_of(task);

	return BPF_CORE_READ(net, ns.inum) == inode;
}

#endif /* ROCELAB_TASK_PLACE_BPF_H */
