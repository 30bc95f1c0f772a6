/* SPDX-License-Identifier: GPL-2.0-only */
/* What was measured. cell_collector.c reads it; stat_table.c and stat_json.c print it. */
#ifndef STAT_REPORT_H
#define STAT_REPORT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#include "calibrate.h"
#include "event_counter.h"
#include "hist.h"
#include "rdma_dev.h"
#include "rxestat.h"
#include "session.h"
#include "stage.h"
#include "sample.h"
#include "stat_losses.h"
#include "stat_owners.h"
#include "stat_work.h"

struct counts {
	__u64 packets;	/* in the histograms */
	__u64 switched; /* left out: the task was switched out meanwhile */
	__u64 slept;	/* of switched: in on-demand paging */
	__u64 loopback; /* of packets */
};

/* the packets of one kind and owner; key as in rxestat.h */
struct group {
	enum direction dir;
	unsigned int owner; /* number in stat_owners; OWNER_UNKNOWN without --group */
	__u32 key;
	struct counts seen; /* sent, or arrived */
	struct counts done; /* received and finished */
	struct hist stage[MAX_STAGES];
};

struct owner_groups {
	struct group *at[DIRECTIONS][KEYS];
};

/* all groups, found by owner, direction and key */
struct groups {
	struct owner_groups *of[OWNER_GROUPS]; /* NULL: none */
};

/* NULL: there is none */
const struct group *groups_at(const struct groups *groups, unsigned int owner, enum direction dir,
			      __u32 key);
/* made when new; NULL: out of memory */
struct group *groups_get(struct groups *groups, unsigned int owner, enum direction dir, __u32 key);
/* of the same direction */
void group_add(struct group *into, const struct group *from);
void groups_clear(struct groups *groups);

struct report {
	struct session session;
	unsigned int interval; /* its number, from 1; 0: the whole session */
	bool histograms;       /* in the tables */
	const struct packet_filter *filter;
	struct calibration cost;
	struct sample sample;
	struct packet_totals totals; /* while sampling */
	/* what all processors counted in kernel mode; NULL: they could not */
	const char *event;
	struct event_count events;
	struct work_report work;
	struct stat_owners owners;
	__u64 lost; /* events without a cell */
	struct losses losses;
	/* of class numbers in keys */
	__u8 service[MAX_CLASSES], class[MAX_CLASSES];
	__u32 dev_index[DEV_PLACES]; /* + 1; 0: none */
};

/* packets without stages, because a program was already running on that CPU */
__u64 packets_missed(const struct report *r);
/* rare events that were not counted, for the same reason */
__u64 losses_missed(const struct report *r);

/* fields of a key */
static inline unsigned int key_size(__u32 key)
{
	return key & ((1 << KEY_SIZE_BITS) - 1);
}

static inline unsigned int key_class(__u32 key)
{
	return key >> KEY_SIZE_BITS & (MAX_CLASSES - 1);
}

static inline unsigned int key_net(__u32 key)
{
	return key >> KEY_NET_SHIFT & ((1 << KEY_NET_BITS) - 1);
}

static inline unsigned int key_dev(__u32 key)
{
	return key >> KEY_DEV_SHIFT & (DEV_PLACES - 1);
}

const char *net_name(unsigned int net);
/* the device's name, or "ib<index>" if it was deleted; in the caller's buffer */
const char *dev_name(const struct report *r, unsigned int place, char name[RDMA_DEV_NAME_LEN]);

/* the same of a place of losses; NULL: of no device, or of one of those that have no place */
const char *loss_dev_name(const struct report *r, int place, char name[RDMA_DEV_NAME_LEN]);

void print_table(FILE *out, const struct report *r, const struct groups *groups);
/* all of these since the session began */
void print_metrics(FILE *out, const struct report *r, const struct groups *groups,
		   bool openmetrics);
void print_json(FILE *out, const struct report *r, const struct groups *groups);

#endif /* STAT_REPORT_H */
