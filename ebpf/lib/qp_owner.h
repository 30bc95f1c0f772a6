/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Queue pairs of processes in a cgroup or network namespace, as BPF programs and readers agree. */
#ifndef ROCELAB_QP_OWNER_H
#define ROCELAB_QP_OWNER_H

#include <linux/types.h>
#include <stdbool.h>

#include "driver.h"
#include "packet_filter.h"
#include "task_place.h"

/* as many as a device has numbers */
#define OWNED_QPS (1 << 18)

struct owned_qp {
	__u32 dev, qpn;
};

struct bpf_map;

/* Functions that return int return 0, or print the error and return the exit status. */

/* What the filter names. Only the instrumented driver says which queue pairs are new. */
int qp_owner_find(struct task_places *owner, const struct packet_filter *filter,
		  const struct driver *driver);
/* The number of calibration's packets, while it lasts: dev and qpn as they pass the filter. */
int qp_owner_calibrate(struct bpf_map *owned, const struct packet_filter *filter, __u32 dev,
		       bool begin);
/* Add the queue pairs that are there already. Call when the programs are attached. */
int qp_owner_add(const struct task_places *owner, struct bpf_map *owned);

/* At the end: say how many new queue pairs found no room, if any. */
void qp_owner_say_lost(__u64 lost);

/* whether a program only follows whose queue pairs are new: no packet runs it */
bool qp_owner_is_followed_by(const char *program);

/* Before loading: for a skeleton with qp_owner.bpf.h, what its programs compare with. */
#define QP_OWNER_CHOOSE(skel, owner, filter)                                          \
	do {                                                                          \
		(skel)->rodata->filter_by_owner = packet_filter_by_owner(filter);     \
		(skel)->rodata->owner_cgroup = (owner)->cgroup.id;                    \
		(skel)->rodata->owner_cgroup_level = (owner)->cgroup.level;           \
		(skel)->rodata->owner_netns = (owner)->netns;                         \
		if (!packet_filter_by_owner(filter)) {                                \
			bpf_program__set_autoload((skel)->progs.rxe_qp_state, false); \
			bpf_map__set_max_entries((skel)->maps.owned_qps, 1);          \
		}                                                                     \
	} while (0)

#endif /* ROCELAB_QP_OWNER_H */
