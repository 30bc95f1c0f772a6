// SPDX-License-Identifier: GPL-2.0-only
#include "qp_list.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

#define MAX_DEVICES 64

/* a look in progress */
struct look {
	struct qp_list *list;
	const struct qp_choice *choice;
	const struct rdma_dev *dev;
	__u32 pid; /* the last one looked up: a process has its queue pairs in a row */
	char comm[COMM_LEN];
	int here; /* as of task_places_have() */
	char cgroup[GROUP_LEN], netns[32];
	int err;
};

static int compare(const struct qp_key *a, const struct qp_key *b)
{
	if (a->dev != b->dev)
		return a->dev < b->dev ? -1 : 1;
	return a->qpn < b->qpn ? -1 : a->qpn > b->qpn;
}

/* where it is, or belongs */
static size_t place_of(const struct qp_list *list, const struct qp_key *key)
{
	size_t low = 0, high = list->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare(&list->at[middle]->row.key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* a new one is elsewhere until its process is known */
static struct qp_entry *get(const struct look *look, const struct qp_key *key)
{
	struct qp_list *list = look->list;
	size_t place = place_of(list, key);
	struct qp_entry *entry;

	if (place < list->n && !compare(&list->at[place]->row.key, key))
		return list->at[place];
	if (list->n == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		struct qp_entry **grown = realloc(list->at, room * sizeof(*grown));

		if (!grown)
			return NULL;
		list->at = grown;
		list->room = room;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->row.key = *key;
	entry->row.elsewhere = task_places_chosen(&look->choice->places);
	memmove(&list->at[place + 1], &list->at[place], (list->n++ - place) * sizeof(*list->at));
	return list->at[place] = entry;
}

static void read_comm(struct look *look)
{
	char path[48];
	FILE *f;

	look->comm[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%u/comm", look->pid);
	f = fopen(path, "re");
	if (f) {
		/* a name may have newlines: all of it, less the one at its end */
		size_t length = fread(look->comm, 1, sizeof(look->comm), f);

		look->comm[length ? length - 1 : 0] = '\0';
		fclose(f);
	}
}

/* the kernel's own queue pairs are in no place */
static void name_process(struct look *look, struct qp_row *row)
{
	if (!row->info.pid) {
		snprintf(row->comm, sizeof(row->comm), "[kernel]");
		return;
	}
	if (look->pid != row->info.pid) {
		look->pid = row->info.pid;
		read_comm(look);
		look->here = task_places_have(&look->choice->places, look->pid);
		if (look->choice->named) {
			cgroup_name(look->pid, look->cgroup, sizeof(look->cgroup));
			netns_name(look->pid, look->netns, sizeof(look->netns));
		}
	}
	memcpy(row->comm, look->comm, sizeof(row->comm));
	/* of one that has just ended, we know what we knew */
	if (look->cgroup[0])
		memcpy(row->cgroup, look->cgroup, sizeof(row->cgroup));
	if (look->netns[0])
		memcpy(row->netns, look->netns, sizeof(row->netns));
	if (look->here >= 0)
		row->elsewhere = !look->here;
	look->list->hidden += look->here == -EACCES || look->here == -EPERM;
}

static void add_listed(void *context, const struct rdma_qp *qp)
{
	struct look *look = context;
	struct qp_key key = {.dev = look->dev->index, .qpn = qp->qpn};
	struct qp_entry *entry = get(look, &key);

	if (!entry) {
		look->err = -ENOMEM;
		return;
	}
	entry->row.listed = true;
	entry->row.info = *qp;
	if (qp->remote_qpn)
		entry->row.peer_qpn = qp->remote_qpn;
	memcpy(entry->row.dev, look->dev->name, sizeof(entry->row.dev));
	name_process(look, &entry->row);
}

/* other drivers' devices have other counters */
static bool is_rxe(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/sent_pkts",
		 name);
	return !access(path, F_OK);
}

static int list_all(struct look *look)
{
	const char *device = look->choice->device;
	static struct rdma_dev devs[MAX_DEVICES];
	int n = rdma_dev_list(devs, MAX_DEVICES);

	for (int i = 0; i < n && !look->err; i++) {
		if (device ? strcmp(devs[i].name, device) : !is_rxe(devs[i].name))
			continue;
		look->dev = &devs[i];
		/* a device may go between the two dumps */
		rdma_qp_list(devs[i].index, add_listed, look);
	}
	return n < 0 ? n : look->err;
}

static int count_one(struct look *look, int map, const struct qp_key *key, __u32 one_of)
{
	struct qp_list *list = look->list;
	struct qp_value value;
	struct qp_entry *entry;

	if (bpf_map_lookup_elem(map, key, &value))
		return 0; /* it has just gone */
	entry = get(look, key);
	if (!entry)
		return -ENOMEM;
	/* a queue pair that came and went between two looks was never listed */
	if (!entry->row.dev[0])
		rdma_dev_name(key->dev, entry->row.dev);
	row_count(&entry->row, &entry->interval, &value, &entry->before, list->seconds, one_of);
	/* not by assignment, which may leave out padding: row_count() compares the memory */
	memcpy(&entry->before, &value.counts, sizeof(entry->before));
	return 0;
}

static int count_all(struct look *look, int map, __u32 one_of)
{
	struct qp_key *keys = calloc(MAX_QPS, sizeof(*keys)), at;
	int err, n = 0;

	if (!keys)
		return -ENOMEM;
	for (err = bpf_map_get_next_key(map, NULL, &at); !err && n < MAX_QPS;
	     err = bpf_map_get_next_key(map, &at, &at))
		keys[n++] = at;
	err = 0;
	for (int i = 0; i < n && !err; i++)
		err = count_one(look, map, &keys[i], one_of);
	free(keys);
	return err;
}

static void drop_gone(struct qp_list *list, int map)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++) {
		struct qp_entry *entry = list->at[i];

		if (entry->row.listed || entry->row.counted) {
			list->at[kept++] = entry;
			continue;
		}
		bpf_map_delete_elem(map, &entry->row.key);
		free(entry);
	}
	list->n = kept;
}

/* rates stay of the last look if there is no event */
static void clear_rates(struct qp_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		struct qp_row *row = &list->at[i]->row;

		row->listed = row->counted = false;
		row->requests = row->cpu = 0;
		list->at[i]->interval = (struct qp_interval){};
		for (int way = 0; way < WAYS; way++)
			row->packets[way] = row->bytes[way] = 0;
	}
}

int qp_list_look(struct qp_list *list, int map, const struct qp_choice *choice, __u32 one_of)
{
	struct look look = {.list = list, .choice = choice};
	__u64 now = clock_now(CLOCK_MONOTONIC);
	int err;

	/* the first look has no interval, and so no rates */
	list->seconds = list->looked_ns && now > list->looked_ns ? (now - list->looked_ns) / 1e9
								 : INFINITY;
	list->looked_ns = now;
	clear_rates(list);
	list->hidden = 0;
	err = list_all(&look);
	err = err ?: count_all(&look, map, one_of);
	if (!err)
		drop_gone(list, map);
	return err;
}

int qp_list_forget_stage(struct qp_list *list, int map)
{
	for (size_t i = 0; i < list->n; i++) {
		struct qp_entry *entry = list->at[i];
		struct qp_value value;

		if (bpf_map_lookup_elem(map, &entry->row.key, &value))
			continue;
		entry->before.stage = value.counts.stage;
		entry->interval.stage = (struct latency){};
		entry->row.stage = (struct quantiles){};
	}
	return 0;
}

void qp_list_free(struct qp_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->at[i]);
	free(list->at);
	*list = (struct qp_list){};
}
