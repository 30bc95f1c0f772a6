/* SPDX-License-Identifier: GPL-2.0-only */
/* What is shown of a queue pair, in which order, and of which. */
#ifndef TOP_COLUMNS_H
#define TOP_COLUMNS_H

#include <stdio.h>

#include "qp_list.h"
#include "stage.h"

#define STAGE_NAME 16

/* the stages to choose from: all but xmit */
int stage_choices(void);
struct stage_choice stage_choice_at(int number);
void stage_choice_name(struct stage_choice choice, char name[STAGE_NAME]);

/* which columns come first; those that still fit follow */
enum view { VIEW_LATENCY, VIEW_PEER, VIEW_STAGE, VIEW_LOSSES, VIEWS };

const char *view_name(enum view view);
bool view_find(const char *name, enum view *view);

#define SORT_KEYS "packets, bytes, requests, latency, stage, losses, drops, cpu, qpn or pid"
enum sort_key {
	SORT_PACKETS,
	SORT_BYTES,
	SORT_REQUESTS,
	SORT_LATENCY,
	SORT_STAGE,
	SORT_LOSSES,
	SORT_DROPS,
	SORT_CPU,
	SORT_QPN,
	SORT_PID,
	SORTS
};

const char *sort_key_name(enum sort_key key);
/* the key that selects it on the screen */
char sort_key_letter(enum sort_key key);
bool sort_key_find(const char *name, enum sort_key *key);

/* what queue pairs of a row have in common */
#define GROUP_KEYS "command, pid, device, peer, cgroup or netns"
enum group_key {
	GROUP_NONE, /* a row for each queue pair */
	GROUP_COMMAND,
	GROUP_PID,
	GROUP_DEVICE,
	GROUP_PEER,
	GROUP_CGROUP,
	GROUP_NETNS,
	GROUPS
};

const char *group_key_name(enum group_key key);
bool group_key_find(const char *name, enum group_key *key);

struct selection {
	enum sort_key sort;
	bool reverse; /* the smallest first */
	bool idle;    /* those of which nothing was counted, too */
	enum group_key group;
	char filter[64];
};

/* Of the list those that are selected, sorted; the caller frees. NULL: out of memory. */
const struct qp_row **select_rows(const struct qp_list *list, const struct selection *selection,
				  size_t *n);

/* Whether a queue pair is one that the filter means; all are for "". */
bool row_passes(const struct qp_row *row, const char *filter);

struct qp_groups;

/* The same of groups, which selection.filter has chosen already. */
const struct qp_row **select_groups(const struct qp_groups *groups,
				    const struct selection *selection, size_t *n);

struct columns {
	enum view view;
	int at[32];    /* numbers of columns */
	int width[32]; /* of names and addresses: of the longest */
	int n;
};

/* Choose as many as fit into a line; width 0: all. grouped: rows are groups of queue pairs. */
void columns_choose(struct columns *columns, enum view view, bool grouped, int width,
		    const struct qp_row *const *rows, size_t nrows);
void columns_print_head(FILE *out, const struct columns *columns);
void columns_print_row(FILE *out, const struct columns *columns, const struct qp_row *row);

#endif /* TOP_COLUMNS_H */
