/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs of some processes, or of those in a cgroup or network namespace, chosen or grouped,
 * as BPF programs and readers agree.
 */
#ifndef ROCELAB_QP_OWNER_H
#define ROCELAB_QP_OWNER_H

#include <linux/types.h>
#include <stdbool.h>

#include "driver.h"
#include "owner_group.h"
#include "packet_filter.h"
#include "task_place.h"

/* as many as a device has numbers */
#define OWNED_QPS (1 << 18)

/* instead of a group's number: the filter leaves it out */
#define OWNER_ELSEWHERE 0xff

struct owned_qp {
	__u32 dev, qpn;
};

struct owner_choice {
	bool filter; /* leave out those that are not in all of these places */
	struct task_places places;
	enum owner_by by; /* the groups */
	__u32 pidns;	  /* the inode of the PID namespace of the processes chosen */
};

static inline bool owner_wanted(const struct owner_choice *choice)
{
	return choice->filter || choice->by;
}

struct bpf_map;
struct bpf_object;

/* Functions that return int return 0, or print the error and return the exit status. */

/* What the command line names. Only the instrumented driver says which queue pairs are new. */
int qp_owner_find(struct owner_choice *choice, const struct packet_filter *filter, enum owner_by by,
		  const struct driver *driver);
/* The number of calibration's packets, while it lasts: dev and qpn as they pass the filter. */
int qp_owner_calibrate(struct bpf_map *owned, const struct owner_choice *choice, struct owned_qp qp,
		       bool begin);
/* Add the queue pairs that are there already. Call when the programs are attached. */
int qp_owner_add(const struct owner_choice *choice, const struct bpf_object *object);

/* What a window before has left, except what QP_OWNER_FORGET() zeroes. 0 or a negative errno. */
int qp_owner_forget(const struct owner_choice *choice, const struct bpf_object *object);

/* At the end: say how many queue pairs found no room, if any. */
void qp_owner_say_lost(const struct owner_choice *choice, __u64 lost);

/* whether a program only follows whose queue pairs are new: no packet runs it */
bool qp_owner_is_followed_by(const char *program);

/* Before loading: for a skeleton with qp_owner.bpf.h, what its programs compare with. */
#define QP_OWNER_CHOOSE(skel, choice)                                                            \
	do {                                                                                     \
		(skel)->rodata->filter_by_owner = (choice)->filter;                              \
		(skel)->rodata->owner_cgroup = (choice)->places.cgroup.id;                       \
		(skel)->rodata->owner_cgroup_level = (choice)->places.cgroup.level;              \
		(skel)->rodata->owner_netns = (choice)->places.netns;                            \
		(skel)->rodata->owner_pidns = (choice)->pidns;                                   \
		__builtin_memcpy((void *)(skel)->rodata->owner_processes, (choice)->places.pids, \
				 sizeof((choice)->places.pids));                                 \
		(skel)->rodata->owner_by = (choice)->by;                                         \
		if (!owner_wanted(choice)) {                                                     \
			bpf_program__set_autoload((skel)->progs.rxe_qp_state, false);            \
			bpf_program__set_autoload((skel)->progs.owner_existing, false);          \
			bpf_map__set_max_entries((skel)->maps.owned_qps, 1);                     \
			bpf_map__set_max_entries((skel)->maps.owner_pids, 1);                    \
		}                                                                                \
		if (!(choice)->by) {                                                             \
			bpf_map__set_max_entries((skel)->maps.owner_numbers, 1);                 \
			bpf_map__set_max_entries((skel)->maps.owner_places, 1);                  \
		}                                                                                \
	} while (0)

/* The same skeleton between two windows, while nothing is attached. 0 or a negative errno. */
#define QP_OWNER_FORGET(skel, choice)                                     \
	({                                                                \
		(skel)->bss->owned_lost = (skel)->bss->owners_beyond = 0; \
		(skel)->data->owners_used = OWNER_FIRST;                  \
		qp_owner_forget(choice, (skel)->obj);                     \
	})

#endif /* ROCELAB_QP_OWNER_H */
