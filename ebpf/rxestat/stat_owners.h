/* SPDX-License-Identifier: GPL-2.0-only */
/* The groups of --group: cgroups or network namespaces, by the numbers that packets are counted
 * under. */
#ifndef STAT_OWNERS_H
#define STAT_OWNERS_H

#include <linux/types.h>
#include <stdbool.h>

#include "json.h"
#include "owner_group.h"

struct rxestat_bpf;

struct stat_owner {
	__u64 id;	   /* the cgroup's, or the namespace's cookie; 0: there is none yet */
	__u32 inode;	   /* the namespace's */
	char *name;	   /* the cgroup's path, "net:[4026531840]"; unprintable bytes as \xNN */
	char *netns;	   /* what `ip netns` calls it; NULL: nothing, or not known */
	unsigned int same; /* the number of the group that it belongs to: its own, or a lower one */
};

/* numbers OWNER_UNKNOWN and OWNER_BEYOND need no entry; without groups all is OWNER_UNKNOWN */
struct stat_owners {
	enum owner_by by;
	__u64 beyond; /* queue pairs that found no number */
	struct stat_owner at[OWNER_GROUPS];
};

/* Name those that are new since the last time. 0 or a negative errno. */
int owners_read(struct stat_owners *owners, const struct rxestat_bpf *skel);
void owners_clear(struct stat_owners *owners);
/* whether packets may be counted under this number */
bool owners_known(const struct stat_owners *owners, unsigned int number);
/* the number of the group that a number belongs to: a cgroup that was made again is one group */
unsigned int owners_group(const struct stat_owners *owners, unsigned int number);
/* "/user.slice"; "-" and "(others)": see docs/man/rxestat.8.md */
const char *owners_name(const struct stat_owners *owners, unsigned int number);
/* "cgroup", "netns" */
const char *owners_key(const struct stat_owners *owners);
/* All groups by name, the unknown last. Returns how many. */
int owners_sorted(const struct stat_owners *owners, unsigned int number[OWNER_GROUPS]);

/* "cgroup /user.slice", "netns net:[4026531840] blue" */
void print_owner(FILE *out, const struct stat_owners *owners, unsigned int number);
/* At the end: say how many queue pairs found no number, if any. */
void owners_say_beyond(const struct stat_owners *owners);
void put_owners_json(struct json *j, const struct stat_owners *owners);

#endif /* STAT_OWNERS_H */
