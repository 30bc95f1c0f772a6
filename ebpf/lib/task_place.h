/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cgroups (version 2) and network namespaces, as named on a command line, and who is in them. */
#ifndef ROCELAB_TASK_PLACE_H
#define ROCELAB_TASK_PLACE_H

#include <linux/types.h>
#include <stdbool.h>

struct cgroup_place {
	__u64 id;
	__u32 level;	  /* below the hierarchy's root */
	const char *path; /* from there: "/a/b"; "" is the root */
};

/* Functions that return int return 0, or print the error and return the exit status. */

/* Of a folder; the path lasts as long as the program. */
int cgroup_find(const char *folder, struct cgroup_place *place);
/* Of a name that `ip netns` gave, or of a file such as /proc/PID/ns/net. */
int netns_find(const char *name, __u32 *inode);

/* Whether a process is there: 1, 0, or a negative errno: -EACCES: we may not know. */
int cgroup_has(const struct cgroup_place *place, __u32 pid);
int netns_has(__u32 inode, __u32 pid);

#endif /* ROCELAB_TASK_PLACE_H */
