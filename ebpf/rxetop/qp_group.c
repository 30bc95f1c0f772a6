// SPDX-License-Identifier: GPL-2.0-only
#include "qp_group.h"

#include <stdlib.h>
#include <string.h>

/* a queue pair and the name of its group; qsort() passes no context */
struct member {
	const struct qp_entry *entry;
	char group[GROUP_LEN];
};

static int compare(const void *left, const void *right)
{
	const struct member *a = left, *b = right;
	int order = strcmp(a->group, b->group);

	if (order)
		return order;
	/* of the list, which is in order */
	return a->entry->row.key.dev != b->entry->row.key.dev
		       ? (a->entry->row.key.dev < b->entry->row.key.dev ? -1 : 1)
		       : (a->entry->row.key.qpn < b->entry->row.key.qpn ? -1 : 1);
}

/* "-": not known */
static void name_group(char name[GROUP_LEN], const struct qp_row *row, enum group_key key)
{
	const char *text = NULL;

	switch (key) {
	case GROUP_COMMAND:
		text = row->comm;
		break;
	case GROUP_PID:
		if (row->info.pid)
			snprintf(name, GROUP_LEN, "%u %s", row->info.pid, row->comm);
		else
			text = row->comm;
		break;
	case GROUP_DEVICE:
		text = row->dev;
		break;
	case GROUP_PEER:
		text = row->peer;
		break;
	case GROUP_CGROUP:
		text = row->cgroup;
		break;
	case GROUP_NETNS:
		text = row->netns;
		break;
	default:
		break;
	}
	if (text || key != GROUP_PID)
		snprintf(name, GROUP_LEN, "%s", text && text[0] ? text : "-");
}

/* all of a group: one after the other in the array */
static void merge(struct qp_row *row, const struct member *members, size_t n)
{
	struct hist work = {}, stage = {};

	*row = (struct qp_row){.key = members->entry->row.key, .listed = true, .qps = n};
	memcpy(row->group, members->group, sizeof(row->group));
	for (size_t i = 0; i < n; i++) {
		row_add(row, &members[i].entry->row);
		latency_add(&work, &members[i].entry->interval.work);
		latency_add(&stage, &members[i].entry->interval.stage);
	}
	row->work = quantiles_of(&work);
	row->stage = quantiles_of(&stage);
}

bool qp_groups_make(struct qp_groups *groups, const struct qp_list *list,
		    const struct selection *selection)
{
	struct member *members = calloc(list->n + 1, sizeof(*members));
	size_t n = 0;

	groups->n = 0;
	groups->at = calloc(list->n + 1, sizeof(*groups->at));
	if (!members || !groups->at) {
		free(members);
		qp_groups_free(groups);
		return false;
	}
	for (size_t i = 0; i < list->n; i++) {
		const struct qp_row *row = &list->at[i]->row;

		if (row->elsewhere || !row_passes(row, selection->filter))
			continue;
		members[n].entry = list->at[i];
		name_group(members[n++].group, row, selection->group);
	}
	qsort(members, n, sizeof(*members), compare);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && !strcmp(members[end].group, members[i].group); end++)
			;
		merge(&groups->at[groups->n++], &members[i], end - i);
	}
	free(members);
	return true;
}

void qp_groups_free(struct qp_groups *groups)
{
	free(groups->at);
	*groups = (struct qp_groups){};
}

const struct qp_row **rows_shown(struct qp_groups *groups, const struct qp_list *list,
				 const struct selection *selection, size_t *n)
{
	if (selection->group == GROUP_NONE)
		return select_rows(list, selection, n);
	qp_groups_make(groups, list, selection);
	return select_groups(groups, selection, n);
}
