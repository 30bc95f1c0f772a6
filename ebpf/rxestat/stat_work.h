/* SPDX-License-Identifier: GPL-2.0-only */
/* Latencies of work requests: read from the cells, and printed. */
#ifndef STAT_WORK_H
#define STAT_WORK_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#include "hist.h"
#include "json.h"
#include "stat_owners.h"
#include "work_cells.h"

struct rxestat_bpf;
struct session;

/* of one queue pair and opcode */
struct work_group {
	struct work_key key; /* half: 0 */
	unsigned int owner;  /* number in stat_owners, of the last reading */
	struct hist latency;
};

struct work_report {
	bool wanted;
	__u32 one_of;
	struct work_group *groups;
	size_t ngroups;
	/* of the whole session; all are in no histogram, and missed has receives, too */
	__u64 without_cell, not_followed, with_error, missed;
};

/* Add what the half holds, and empty it. 0 or a negative errno. */
int work_poll(struct work_report *work, struct rxestat_bpf *skel, bool half);
void work_account(struct work_report *work, const struct rxestat_bpf *skel,
		  const struct session *session);
void work_clear(struct work_report *work);
/* What the programs keep, too. Only while none is attached. 0 or a negative errno. */
int work_forget(struct work_report *work, struct rxestat_bpf *skel);

void print_work_table(FILE *out, const struct work_report *work, const struct stat_owners *owners,
		      bool histograms);
void put_work_json(struct json *j, const struct work_report *work,
		   const struct stat_owners *owners);

#endif /* STAT_WORK_H */
