/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cgroups (version 2), network namespaces and processes, as named on a command line, and who is of
 * them. */
#ifndef ROCELAB_TASK_PLACE_H
#define ROCELAB_TASK_PLACE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct cgroup_place {
	__u64 id;
	__u32 level;	  /* below the hierarchy's root */
	const char *path; /* from there: "/a/b"; "" is the root */
};

/* as many as a command line may choose */
#define PLACE_PIDS 16
/* how far above a task its ancestors are looked for */
#define PLACE_ANCESTORS 16

/* those that a command line chooses; 0: any */
struct task_places {
	struct cgroup_place cgroup;
	__u32 netns; /* the namespace's inode */
	/* processes, of which one is the task's or an ancestor of it, as many as are not 0 */
	__u32 pids[PLACE_PIDS];
};

static inline bool task_places_chosen(const struct task_places *places)
{
	return places->cgroup.id || places->netns || places->pids[0];
}

/* Functions that return int return 0, or print the error and return the exit status. */

/* Of a folder; the path lasts as long as the program. */
int cgroup_find(const char *folder, struct cgroup_place *place);
/* Of a name that `ip netns` gave, or of a file such as /proc/PID/ns/net. */
int netns_find(const char *name, __u32 *inode);
/* The name that `ip netns` gave it, in NAME_MAX + 1 bytes; false: none. */
bool netns_has_name(__u32 inode, char *name);
/* A process must be there. */
int process_find(__u32 pid);
/* The inode of this process's PID namespace. */
int pidns_find(__u32 *inode);

/* Whether a process is there: 1, 0, or a negative errno: -EACCES: we may not know. */
int cgroup_has(const struct cgroup_place *place, __u32 pid);
int netns_has(__u32 inode, __u32 pid);
/* of these processes, or a descendant of one */
int processes_have(const __u32 pids[PLACE_PIDS], __u32 pid);
/* Where a process is: the cgroup's path (version 2), "net:[4026531840]"; "" if we may not know. */
void cgroup_name(__u32 pid, char *name, size_t size);
void netns_name(__u32 pid, char *name, size_t size);
/* in all that are chosen */
int task_places_have(const struct task_places *places, __u32 pid);

#endif /* ROCELAB_TASK_PLACE_H */
