/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The cgroups or network namespaces of queue pairs' processes, numbered as they are seen. */
#ifndef ROCELAB_OWNER_GROUP_H
#define ROCELAB_OWNER_GROUP_H

#include <linux/types.h>

enum owner_by { OWNER_BY_NONE, OWNER_BY_CGROUP, OWNER_BY_NETNS };

/* numbers, in one byte */
#define OWNER_GROUPS  128
#define OWNER_UNKNOWN 0 /* of queue pairs whose process is not known */
#define OWNER_FIRST   1
#define OWNER_BEYOND  (OWNER_GROUPS - 1) /* of those that found no number */

/* the longest name that the kernel allows, and the levels of a path that are kept */
#define OWNER_NAME   256
#define OWNER_LEVELS 16

struct owner_place {
	__u64 id;    /* the cgroup's, or the namespace's cookie, which is never used again */
	__u32 inode; /* the namespace's */
	__u32 level; /* of the cgroup, below the hierarchy's root */
	char name[OWNER_LEVELS][OWNER_NAME]; /* of the cgroup's last levels, from the root on */
};

#endif /* ROCELAB_OWNER_GROUP_H */
