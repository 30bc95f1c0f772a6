// SPDX-License-Identifier: GPL-2.0-only
#include "top_columns.h"

#include <stdlib.h>
#include <string.h>

#include "qp_group.h"
#include "text.h"

#define CELL 160

int stage_choices(void)
{
	return stage_count[DIR_TX] - 1 + stage_count[DIR_RX]; /* xmit is the last of the sent */
}

struct stage_choice stage_choice_at(int number)
{
	__u32 sent = stage_count[DIR_TX] - 1;

	return (__u32)number < sent ? (struct stage_choice){.dir = DIR_TX, .number = number}
				    : (struct stage_choice){.dir = DIR_RX, .number = number - sent};
}

void stage_choice_name(struct stage_choice choice, char name[STAGE_NAME])
{
	snprintf(name, STAGE_NAME, "%s.%s", direction_name(choice.dir),
		 stages[choice.dir][choice.number].name);
}

static const char *const views[VIEWS] = {"latency", "peer", "stage", "losses"};

const char *view_name(enum view view)
{
	return views[view];
}

bool view_find(const char *name, enum view *view)
{
	for (int i = 0; i < VIEWS; i++) {
		if (!strcmp(views[i], name)) {
			*view = i;
			return true;
		}
	}
	return false;
}

static double packets(const struct qp_row *r)
{
	return r->packets[SENT] + r->packets[RECEIVED];
}

static double bytes(const struct qp_row *r)
{
	return r->bytes[SENT] + r->bytes[RECEIVED];
}

static double requests(const struct qp_row *r)
{
	return r->requests;
}

static double latency(const struct qp_row *r)
{
	return r->work.p99;
}

static double stage(const struct qp_row *r)
{
	return r->stage.p99;
}

static double losses(const struct qp_row *r)
{
	return r->retransmits + r->naks[SENT] + r->naks[RECEIVED] + r->rnrs[SENT] +
	       r->rnrs[RECEIVED] + r->dropped;
}

static double drops(const struct qp_row *r)
{
	return r->dropped;
}

static double cpu(const struct qp_row *r)
{
	return r->cpu;
}

/* numbers of names: the smallest first */
static double qpn(const struct qp_row *r)
{
	return -(double)r->key.qpn;
}

static double pid(const struct qp_row *r)
{
	return -(double)r->info.pid;
}

static const struct {
	const char *name;
	char letter;
	double (*value)(const struct qp_row *row);
} sorts[SORTS] = {
	[SORT_PACKETS] = {"packets", 'P', packets},
	[SORT_BYTES] = {"bytes", 'B', bytes},
	[SORT_REQUESTS] = {"requests", 'W', requests},
	[SORT_LATENCY] = {"latency", 'L', latency},
	[SORT_STAGE] = {"stage", 'S', stage},
	[SORT_LOSSES] = {"losses", 'R', losses},
	[SORT_DROPS] = {"drops", 'D', drops},
	[SORT_CPU] = {"cpu", 'C', cpu},
	[SORT_QPN] = {"qpn", 'Q', qpn},
	[SORT_PID] = {"pid", 'N', pid},
};

const char *sort_key_name(enum sort_key key)
{
	return sorts[key].name;
}

char sort_key_letter(enum sort_key key)
{
	return sorts[key].letter;
}

bool sort_key_find(const char *name, enum sort_key *key)
{
	for (int i = 0; i < SORTS; i++) {
		if (!strcmp(sorts[i].name, name)) {
			*key = i;
			return true;
		}
	}
	return false;
}

static const char *const group_keys[GROUPS] = {"none", "command", "pid",  "device",
					       "peer", "cgroup",  "netns"};

const char *group_key_name(enum group_key key)
{
	return group_keys[key];
}

bool group_key_find(const char *name, enum group_key *key)
{
	for (int i = GROUP_NONE + 1; i < GROUPS; i++) {
		if (!strcmp(group_keys[i], name)) {
			*key = i;
			return true;
		}
	}
	return false;
}

bool row_passes(const struct qp_row *row, const char *filter)
{
	char number[16];

	if (!filter[0] || strstr(row->comm, filter) || strstr(row->peer, filter) ||
	    strstr(row->dev, filter))
		return true;
	snprintf(number, sizeof(number), "%u", row->key.qpn);
	if (!strcmp(number, filter))
		return true;
	snprintf(number, sizeof(number), "%u", row->info.pid);
	return row->info.pid && !strcmp(number, filter);
}

/* qsort() passes no context */
static const struct selection *sorted_by;

static int compare(const void *left, const void *right)
{
	const struct qp_row *a = *(const struct qp_row *const *)left;
	const struct qp_row *b = *(const struct qp_row *const *)right;
	double x = sorts[sorted_by->sort].value(a), y = sorts[sorted_by->sort].value(b);

	if (x != y)
		return (x < y) != sorted_by->reverse ? 1 : -1;
	/* equals keep their order from one time to the next */
	if (a->key.dev != b->key.dev)
		return a->key.dev < b->key.dev ? -1 : 1;
	return a->key.qpn < b->key.qpn ? -1 : a->key.qpn > b->key.qpn;
}

static const struct qp_row **sort_rows(const struct qp_row **rows, size_t n,
				       const struct selection *selection)
{
	sorted_by = selection;
	if (rows)
		qsort(rows, n, sizeof(*rows), compare);
	return rows;
}

const struct qp_row **select_rows(const struct qp_list *list, const struct selection *selection,
				  size_t *n)
{
	const struct qp_row **rows = calloc(list->n + 1, sizeof(*rows));

	*n = 0;
	for (size_t i = 0; rows && i < list->n; i++) {
		const struct qp_row *row = &list->at[i]->row;

		if (!row->elsewhere && (selection->idle || row->counted) &&
		    row_passes(row, selection->filter))
			rows[(*n)++] = row;
	}
	return sort_rows(rows, *n, selection);
}

const struct qp_row **select_groups(const struct qp_groups *groups,
				    const struct selection *selection, size_t *n)
{
	const struct qp_row **rows = calloc(groups->n + 1, sizeof(*rows));

	*n = 0;
	for (size_t i = 0; rows && i < groups->n; i++) {
		if (selection->idle || groups->at[i].counted)
			rows[(*n)++] = &groups->at[i];
	}
	return sort_rows(rows, *n, selection);
}

static void put_qpn(char *into, const struct qp_row *r)
{
	snprintf(into, CELL, "%u", r->key.qpn);
}

static void put_dev(char *into, const struct qp_row *r)
{
	text_escaped(into, CELL, r->dev);
}

static void put_type(char *into, const struct qp_row *r)
{
	snprintf(into, CELL, "%s", r->listed ? rdma_qp_type_name(r->info.type) : "-");
}

static void put_state(char *into, const struct qp_row *r)
{
	snprintf(into, CELL, "%s", r->listed ? rdma_qp_state_name(r->info.state) : "gone");
}

static void put_pid(char *into, const struct qp_row *r)
{
	if (r->info.pid)
		snprintf(into, CELL, "%u", r->info.pid);
}

static void put_comm(char *into, const struct qp_row *r)
{
	if (r->comm[0])
		text_escaped(into, CELL, r->comm);
}

static void put_peer(char *into, const struct qp_row *r)
{
	if (r->peer[0])
		snprintf(into, CELL, "%s", r->peer);
}

static void put_group(char *into, const struct qp_row *r)
{
	text_escaped(into, CELL, r->group);
}

static void put_qps(char *into, const struct qp_row *r)
{
	text_number(into, r->qps);
}

static void put_dqpn(char *into, const struct qp_row *r)
{
	if (r->peer_qpn)
		snprintf(into, CELL, "%u", r->peer_qpn);
}

#define PUT_NUMBER(name, value)                              \
	static void name(char *into, const struct qp_row *r) \
	{                                                    \
		text_number(into, value);                    \
	}

PUT_NUMBER(put_packets, packets(r))
PUT_NUMBER(put_bytes, bytes(r))
PUT_NUMBER(put_sent, r->packets[SENT])
PUT_NUMBER(put_received, r->packets[RECEIVED])
PUT_NUMBER(put_requests, r->requests)
PUT_NUMBER(put_retransmits, r->retransmits)
PUT_NUMBER(put_timeouts, r->timeouts)
PUT_NUMBER(put_naks_sent, r->naks[SENT])
PUT_NUMBER(put_naks_received, r->naks[RECEIVED])
PUT_NUMBER(put_rnrs_sent, r->rnrs[SENT])
PUT_NUMBER(put_rnrs_received, r->rnrs[RECEIVED])
PUT_NUMBER(put_drops, r->dropped)
PUT_NUMBER(put_cpu, 100 * r->cpu)

#define PUT_TIME(name, histogram, quantile)                     \
	static void name(char *into, const struct qp_row *r)    \
	{                                                       \
		if (r->histogram.count)                         \
			text_time(into, r->histogram.quantile); \
	}

PUT_TIME(put_p50, work, p50)
PUT_TIME(put_p99, work, p99)
PUT_TIME(put_p999, work, p999)
PUT_TIME(put_stage50, stage, p50)
PUT_TIME(put_stage99, stage, p99)
PUT_TIME(put_stage999, stage, p999)

/* cut by print_cell() if there are many: the number of all is in a column of its own */
static void put_reasons(char *into, const struct qp_row *r)
{
	const char *separator = "";
	size_t used = 0;

	for (int i = 0; i < DROP_PLACES; i++) {
		if (!r->drops[i] || used >= CELL - 40)
			continue;
		used += snprintf(into + used, CELL - used, "%s%s %llu", separator, drop_name(i),
				 (unsigned long long)r->drops[i]);
		separator = ",";
	}
}

enum id {
	QPN,
	DEV,
	TYPE,
	STATE,
	PID,
	COMM,
	PEER,
	DQPN,
	PACKETS,
	BYTES,
	TX,
	RX,
	REQUESTS,
	P50,
	P99,
	P999,
	STAGE50,
	STAGE99,
	STAGE999,
	RETRANSMITS,
	TIMEOUTS,
	NAKS_OUT,
	NAKS_IN,
	RNRS_OUT,
	RNRS_IN,
	DROPS,
	CPU,
	REASONS,
	QPS,
	GROUP,
	COLUMNS
};

static const struct column {
	const char *title;
	int width;
	int widest; /* a name's; 0: numbers never need more than their width */
	void (*put)(char *into, const struct qp_row *row);
} columns[COLUMNS] = {
	[QPN] = {"QPN", 8, 0, put_qpn},
	[DEV] = {"DEVICE", 6, 15, put_dev},
	[TYPE] = {"TYPE", 4, 10, put_type},
	[STATE] = {"STATE", 5, 7, put_state},
	[PID] = {"PID", 7, 0, put_pid},
	[COMM] = {"COMMAND", 15, 15, put_comm},
	[PEER] = {"PEER", 15, 39, put_peer},
	[DQPN] = {"DESTQPN", 8, 0, put_dqpn},
	[PACKETS] = {"PKT/S", 6, 0, put_packets},
	[BYTES] = {"B/S", 6, 0, put_bytes},
	[TX] = {"TXPK/S", 6, 0, put_sent},
	[RX] = {"RXPK/S", 6, 0, put_received},
	[REQUESTS] = {"REQ/S", 6, 0, put_requests},
	[P50] = {"P50", 6, 0, put_p50},
	[P99] = {"P99", 6, 0, put_p99},
	[P999] = {"P99.9", 6, 0, put_p999},
	[STAGE50] = {"STG50", 6, 0, put_stage50},
	[STAGE99] = {"STG99", 6, 0, put_stage99},
	[STAGE999] = {"STG999", 6, 0, put_stage999},
	[RETRANSMITS] = {"RETRAN", 6, 0, put_retransmits},
	[TIMEOUTS] = {"TIMEO", 6, 0, put_timeouts},
	[NAKS_OUT] = {"NAK>", 6, 0, put_naks_sent},
	[NAKS_IN] = {"NAK<", 6, 0, put_naks_received},
	[RNRS_OUT] = {"RNR>", 6, 0, put_rnrs_sent},
	[RNRS_IN] = {"RNR<", 6, 0, put_rnrs_received},
	[DROPS] = {"DROPS", 6, 0, put_drops},
	[CPU] = {"%CPU", 6, 0, put_cpu},
	[REASONS] = {"REASONS", 15, CELL - 1, put_reasons},
	[QPS] = {"QPS", 6, 0, put_qps},
	[GROUP] = {"GROUP", 15, CELL - 1, put_group},
};

/* a view's own columns, ended by COLUMNS; they fit into 80 characters */
static const enum id first[VIEWS][16] = {
	[VIEW_LATENCY] = {QPN, PID, COMM, STATE, PACKETS, BYTES, REQUESTS, P50, P99, P999, COLUMNS},
	[VIEW_PEER] = {QPN, DEV, PEER, DQPN, PACKETS, TYPE, PID, STATE, COLUMNS},
	[VIEW_STAGE] = {QPN, PID, COMM, PACKETS, BYTES, CPU, STAGE50, STAGE99, STAGE999, COLUMNS},
	[VIEW_LOSSES] = {QPN, PACKETS, RETRANSMITS, TIMEOUTS, NAKS_OUT, NAKS_IN, RNRS_OUT, RNRS_IN,
			 DROPS, REASONS, COLUMNS},
};

/* the same of groups */
static const enum id first_of_groups[VIEWS][16] = {
	[VIEW_LATENCY] = {QPS, PACKETS, BYTES, REQUESTS, P50, P99, P999, GROUP, COLUMNS},
	[VIEW_PEER] = {QPS, PACKETS, TX, RX, BYTES, REQUESTS, GROUP, COLUMNS},
	[VIEW_STAGE] = {QPS, PACKETS, BYTES, CPU, STAGE50, STAGE99, STAGE999, GROUP, COLUMNS},
	[VIEW_LOSSES] = {QPS, RETRANSMITS, TIMEOUTS, NAKS_OUT, NAKS_IN, RNRS_OUT, RNRS_IN, DROPS,
			 GROUP, COLUMNS},
};

/* of one queue pair, or of several: the other kind of row has no such value */
static bool fits_row(enum id id, bool grouped)
{
	return grouped ? id > DQPN : id < QPS;
}

static bool is_chosen(const struct columns *c, enum id id)
{
	for (int i = 0; i < c->n; i++) {
		if (c->at[i] == (int)id)
			return true;
	}
	return false;
}

static int width_of(enum id id, const struct qp_row *const *rows, size_t nrows)
{
	int width = columns[id].width;
	char cell[CELL];

	for (size_t i = 0; i < nrows && columns[id].widest > width; i++) {
		cell[0] = '\0';
		columns[id].put(cell, rows[i]);
		if ((int)strlen(cell) > width)
			width = strlen(cell);
	}
	return columns[id].widest && width > columns[id].widest ? columns[id].widest : width;
}

static void choose(struct columns *c, enum id id, int *left, const struct qp_row *const *rows,
		   size_t nrows)
{
	int space = c->n != 0, width;

	if (is_chosen(c, id))
		return;
	width = width_of(id, rows, nrows);
	/* these take what is left */
	if ((id == REASONS || id == GROUP) && space + width > *left &&
	    *left - space >= columns[id].width)
		width = *left - space;
	if (space + width > *left)
		return;
	c->at[c->n] = id;
	c->width[c->n++] = width;
	*left -= space + width;
}

void columns_choose(struct columns *c, enum view view, bool grouped, int width,
		    const struct qp_row *const *rows, size_t nrows)
{
	int left = width ?: 0x7fffffff;

	*c = (struct columns){.view = view};
	for (const enum id *id = grouped ? first_of_groups[view] : first[view]; *id != COLUMNS;
	     id++)
		choose(c, *id, &left, rows, nrows);
	for (enum id id = 0; id < COLUMNS; id++) {
		if (fits_row(id, grouped))
			choose(c, id, &left, rows, nrows);
	}
}

static bool is_text(int id)
{
	return columns[id].widest != 0;
}

static void print_cell(FILE *out, const struct columns *c, int i, const char *text)
{
	bool last = i == c->n - 1;
	int width = c->width[i], length = strlen(text);

	if (i)
		fputc(' ', out);
	if (!is_text(c->at[i]))
		fprintf(out, "%*s", width, text);
	else if (length > width)
		fprintf(out, "%.*s+", width - 1, text); /* a name that goes on */
	else
		fprintf(out, "%-*s", last ? 0 : width, text);
}

void columns_print_head(FILE *out, const struct columns *c)
{
	for (int i = 0; i < c->n; i++)
		print_cell(out, c, i, columns[c->at[i]].title);
}

void columns_print_row(FILE *out, const struct columns *c, const struct qp_row *row)
{
	for (int i = 0; i < c->n; i++) {
		char cell[CELL] = "";

		columns[c->at[i]].put(cell, row);
		print_cell(out, c, i, cell[0] ? cell : "-");
	}
}
