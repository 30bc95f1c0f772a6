// SPDX-License-Identifier: GPL-2.0-only
#include "stat_owners.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "msg.h"
#include "stat_report.h"
#include "task_place.h"
#include "text.h"

#include "rxestat.skel.h"

/* an escape has four characters; a path has slashes, and what replaces its upper levels */
#define NAME_ROOM (4 * OWNER_LEVELS * (OWNER_NAME + 1) + 64)

/* qsort() passes no context */
static const struct stat_owners *sorted_owners;

/* "/a/b", ".../p/q (cgroup 123)" below the levels that are kept */
static char *cgroup_path(const struct owner_place *place)
{
	bool deep = place->level > OWNER_LEVELS;
	unsigned int levels = deep ? OWNER_LEVELS : place->level;
	char raw[OWNER_LEVELS * (OWNER_NAME + 1) + 1] = "", *name = malloc(NAME_ROOM);
	size_t used = 0;

	if (!name)
		return NULL;
	for (unsigned int i = 0; i < levels; i++)
		used += snprintf(raw + used, sizeof(raw) - used, "/%.*s", OWNER_NAME - 1,
				 place->name[i]);
	used = snprintf(name, NAME_ROOM, "%s", deep ? "..." : "");
	text_escaped(name + used, NAME_ROOM - used, levels ? raw : "/");
	used = strlen(name);
	if (deep)
		snprintf(name + used, NAME_ROOM - used, " (cgroup %llu)",
			 (unsigned long long)place->id);
	return name;
}

/* the kernel gives the number of a namespace that is gone to the next one */
static char *netns_number(const struct stat_owners *owners, unsigned int number, __u32 inode)
{
	int earlier = 0;
	char *name;

	for (unsigned int i = OWNER_FIRST; i < number; i++) {
		const struct stat_owner *other = &owners->at[i];

		earlier += other->id && other->same == i && other->inode == inode;
	}
	if (asprintf(&name, "net:[%u]", inode) < 0)
		return NULL;
	if (earlier) {
		free(name);
		if (asprintf(&name, "net:[%u]#%d", inode, earlier + 1) < 0)
			return NULL;
	}
	return name;
}

/* of the same cgroup path, or the same namespace */
static bool is_same(const struct stat_owners *owners, const struct stat_owner *a,
		    const struct stat_owner *b)
{
	if (!a->id)
		return false;
	return owners->by == OWNER_BY_CGROUP ? !strcmp(a->name, b->name) : a->id == b->id;
}

static int add(struct stat_owners *owners, unsigned int number, const struct owner_place *place)
{
	struct stat_owner *owner = &owners->at[number];

	owner->inode = place->inode;
	owner->name = owners->by == OWNER_BY_CGROUP ? cgroup_path(place)
						    : netns_number(owners, number, place->inode);
	if (!owner->name)
		return -ENOMEM;
	owner->id = place->id;
	owner->same = number;
	for (unsigned int i = OWNER_FIRST; i < number && owner->same == number; i++) {
		if (is_same(owners, &owners->at[i], owner))
			owner->same = owners->at[i].same;
	}
	return 0;
}

/* of a namespace that is gone: a later one has its number */
static bool is_gone(const struct stat_owners *owners, unsigned int number)
{
	const struct stat_owner *owner = &owners->at[number];

	for (unsigned int i = number + 1; i < OWNER_BEYOND; i++) {
		if (owners->at[i].inode == owner->inode && owners->at[i].id != owner->id)
			return owners->at[i].id;
	}
	return false;
}

/* once they have a name they keep it: the one when they were seen */
static void name_netns(struct stat_owners *owners)
{
	char name[NAME_MAX + 1], escaped[4 * NAME_MAX + 1];

	for (unsigned int i = OWNER_FIRST; i < OWNER_BEYOND; i++) {
		struct stat_owner *owner = &owners->at[i];

		if (!owner->id || owner->netns || is_gone(owners, i) ||
		    !netns_has_name(owner->inode, name))
			continue;
		text_escaped(escaped, sizeof(escaped), name);
		owner->netns = strdup(escaped);
	}
}

int owners_read(struct stat_owners *owners, const struct rxestat_bpf *skel)
{
	__u32 used = __atomic_load_n(&skel->data->owners_used, __ATOMIC_RELAXED);
	int err = 0;

	if (!owners->by)
		return 0;
	owners->beyond = skel->bss->owners_beyond;
	for (__u32 i = OWNER_FIRST; i < used && i < OWNER_BEYOND && !err; i++) {
		static struct owner_place place;

		if (owners->at[i].id)
			continue;
		if (bpf_map_lookup_elem(bpf_map__fd(skel->maps.owner_places), &i, &place))
			return -errno;
		/*
		 * The program writes it last. Who has packets in what is read has a number, and so
		 * have all that came before.
		 */
		if (!place.id)
			break;
		err = add(owners, i, &place);
	}
	if (owners->by == OWNER_BY_NETNS)
		name_netns(owners);
	return err;
}

void owners_clear(struct stat_owners *owners)
{
	for (int i = 0; i < OWNER_GROUPS; i++) {
		free(owners->at[i].name);
		free(owners->at[i].netns);
	}
	memset(owners->at, 0, sizeof(owners->at));
}

bool owners_known(const struct stat_owners *owners, unsigned int number)
{
	if (!owners->by)
		return number == OWNER_UNKNOWN;
	return number == OWNER_UNKNOWN || number == OWNER_BEYOND || owners->at[number].id;
}

unsigned int owners_group(const struct stat_owners *owners, unsigned int number)
{
	return owners->at[number].id ? owners->at[number].same : number;
}

const char *owners_name(const struct stat_owners *owners, unsigned int number)
{
	if (number == OWNER_BEYOND)
		return "(others)";
	return owners->at[number].name ?: "-";
}

const char *owners_key(const struct stat_owners *owners)
{
	return owners->by == OWNER_BY_CGROUP ? "cgroup" : "netns";
}

static int compare(const void *left, const void *right)
{
	unsigned int a = *(const unsigned int *)left, b = *(const unsigned int *)right;
	bool named_a = sorted_owners->at[a].name, named_b = sorted_owners->at[b].name;

	if (named_a != named_b)
		return named_a ? -1 : 1;
	return named_a ? strcmp(sorted_owners->at[a].name, sorted_owners->at[b].name)
		       : (int)b - (int)a;
}

int owners_sorted(const struct stat_owners *owners, unsigned int number[OWNER_GROUPS])
{
	int n = 0;

	for (unsigned int i = 0; i < OWNER_GROUPS; i++) {
		if (owners_known(owners, i) && owners_group(owners, i) == i)
			number[n++] = i;
	}
	sorted_owners = owners;
	qsort(number, n, sizeof(*number), compare);
	return n;
}

void print_owner(FILE *out, const struct stat_owners *owners, unsigned int number)
{
	const char *netns = owners->at[number].netns;

	fprintf(out, "%s %s%s%s", owners_key(owners), owners_name(owners, number), netns ? " " : "",
		netns ?: "");
}

void owners_say_beyond(const struct stat_owners *owners)
{
	if (owners->beyond)
		msg("%llu queue pairs are in the group (others): %d groups are told apart at most, "
		    "also those that are gone; start again to see the present ones",
		    (unsigned long long)owners->beyond, OWNER_BEYOND - OWNER_FIRST);
}

void put_owners_json(struct json *j, const struct stat_owners *owners)
{
	if (!owners->by)
		return;
	json_string(j, "group_by", owners_key(owners));
	json_u64(j, "qps_beyond", owners->beyond);
	json_open_array(j, "groups");
	for (int i = OWNER_FIRST; i < OWNER_BEYOND; i++) {
		const struct stat_owner *owner = &owners->at[i];

		if (!owner->id)
			continue;
		json_open_object(j, NULL);
		json_string(j, "group", owners_name(owners, owner->same));
		json_u64(j, "id", owners->by == OWNER_BY_CGROUP ? owner->id : owner->inode);
		if (owners->by == OWNER_BY_NETNS)
			json_string(j, "name", owner->netns);
		json_close_object(j);
	}
	json_close_array(j);
}
