/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether a task is in a cgroup (version 2) or in a network namespace. */
#ifndef ROCELAB_TASK_PLACE_BPF_H
#define ROCELAB_TASK_PLACE_BPF_H

#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "rxe_record.h"

struct kernfs_node {
	__u64 id;
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
} ROCELAB_CORE;

struct nsproxy {
	struct net *net_ns;
} ROCELAB_CORE;

struct task_struct___place {
	struct css_set *cgroups;
	struct nsproxy *nsproxy;
} ROCELAB_CORE;

/* in this cgroup, which is `at` levels below the hierarchy's root, or below it */
static __always_inline bool in_cgroup(const void *task, __u64 id, int at)
{
	const struct cgroup *group =
		BPF_CORE_READ((const struct task_struct___place *)task, cgroups, dfl_cgrp);
	const struct cgroup *ancestor = NULL;
	const void *place;

	if (!group || BPF_CORE_READ(group, level) < at)
		return false;
	place = (const void *)group + bpf_core_field_offset(struct cgroup, ancestors) +
		at * sizeof(ancestor);
	if (bpf_probe_read_kernel(&ancestor, sizeof(ancestor), place) || !ancestor)
		return false;
	return BPF_CORE_READ(ancestor, kn, id) == id;
}

static __always_inline bool in_netns(const void *task, __u32 inode)
{
	return BPF_CORE_READ((const struct task_struct___place *)task, nsproxy, net_ns, ns.inum) ==
	       inode;
}

#endif /* ROCELAB_TASK_PLACE_BPF_H */
