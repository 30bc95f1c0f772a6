// SPDX-License-Identifier: GPL-2.0-only
#include "stat_report.h"

#include <stdlib.h>
#include <string.h>

#include "qp_owner.h"
#include "text.h"

const struct group *groups_at(const struct groups *groups, unsigned int owner, enum direction dir,
			      __u32 key)
{
	return groups->of[owner] ? groups->of[owner]->at[dir][key] : NULL;
}

struct group *groups_get(struct groups *groups, unsigned int owner, enum direction dir, __u32 key)
{
	struct owner_groups **of = &groups->of[owner];
	struct group **at;

	if (!*of)
		*of = calloc(1, sizeof(**of));
	if (!*of)
		return NULL;
	at = &(*of)->at[dir][key];
	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (*at)
			**at = (struct group){.dir = dir, .owner = owner, .key = key};
	}
	return *at;
}

void groups_clear(struct groups *groups)
{
	for (int owner = 0; owner < OWNER_GROUPS; owner++) {
		for (int i = 0; groups->of[owner] && i < DIRECTIONS * KEYS; i++)
			free(groups->of[owner]->at[i / KEYS][i % KEYS]);
		free(groups->of[owner]);
		groups->of[owner] = NULL;
	}
}

static void counts_add(struct counts *into, const struct counts *from)
{
	into->packets += from->packets;
	into->switched += from->switched;
	into->slept += from->slept;
	into->loopback += from->loopback;
}

void group_add(struct group *into, const struct group *from)
{
	counts_add(&into->seen, &from->seen);
	counts_add(&into->done, &from->done);
	for (int i = 0; i < stage_count[from->dir]; i++)
		hist_merge(&into->stage[i], &from->stage[i]);
}

/*
 * a miss of net_dev_start_xmit costs a packet only its xmit, one of a rare event nothing; requests
 * are not packets
 */
static bool costs_a_packet(const char *program)
{
	return strcmp(program, "net_dev_start_xmit") != 0 && !qp_owner_is_followed_by(program) &&
	       !losses_are_counted_by(program) && !text_has_prefix(program, "work_");
}

__u64 packets_missed(const struct report *r)
{
	return session_missed(&r->session, costs_a_packet);
}

__u64 losses_missed(const struct report *r)
{
	return session_missed(&r->session, losses_are_counted_by);
}

const char *net_name(unsigned int net)
{
	switch (net) {
	case RXE_NET_V1:
		return "v1";
	case RXE_NET_V2_IPV4:
		return "v2-ipv4";
	case RXE_NET_V2_IPV6:
		return "v2-ipv6";
	default:
		return "unknown";
	}
}

const char *dev_name(const struct report *r, unsigned int place, char name[RDMA_DEV_NAME_LEN])
{
	return rdma_dev_name(r->dev_index[place] - 1, name);
}

const char *loss_dev_name(const struct report *r, int place, char name[RDMA_DEV_NAME_LEN])
{
	return r->losses.at[place].tag ? rdma_dev_name(r->losses.at[place].tag - 1, name) : NULL;
}
