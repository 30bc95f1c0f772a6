// SPDX-License-Identifier: GPL-2.0-only
#include "stat_work.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "map_clear.h"
#include "qp_owner.h"
#include "session.h"
#include "stat_hist.h"
#include "stat_report.h"
#include "work_request.h"

#include "rxestat.skel.h"

static int compare(const void *left, const void *right)
{
	const struct work_key *a = &((const struct work_group *)left)->key;
	const struct work_key *b = &((const struct work_group *)right)->key;

	if (a->dev != b->dev)
		return a->dev < b->dev ? -1 : 1;
	if (a->qpn != b->qpn)
		return a->qpn < b->qpn ? -1 : 1;
	return a->opcode - b->opcode;
}

static struct work_group *get(struct work_report *work, const struct work_key *key)
{
	struct work_group *grown, *g = NULL;

	if (work->ngroups)
		g = bsearch(&(struct work_group){.key = *key}, work->groups, work->ngroups,
			    sizeof(*g), compare);
	if (g)
		return g;
	grown = realloc(work->groups, (work->ngroups + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	work->groups = grown;
	g = &grown[work->ngroups++];
	*g = (struct work_group){.key = *key};
	qsort(grown, work->ngroups, sizeof(*grown), compare);
	return bsearch(&(struct work_group){.key = *key}, grown, work->ngroups, sizeof(*g),
		       compare);
}

static void add(struct work_group *g, const struct work_cell *cell)
{
	struct hist one = {.sum = cell->sum.far, .min = cell->sum.min, .max = cell->sum.max};

	for (int b = 0; b < LOGLIN_BUCKETS; b++)
		packed_read(cell->bucket[b], b, &one);
	hist_merge(&g->latency, &one);
}

/* the queue pair's number of its owner */
static unsigned int owner_of(struct rxestat_bpf *skel, const struct work_key *key)
{
	const struct owned_qp qp = {key->dev, key->qpn};
	__u8 number = OWNER_UNKNOWN;

	if (skel->rodata->owner_by)
		bpf_map_lookup_elem(bpf_map__fd(skel->maps.owned_qps), &qp, &number);
	return number;
}

static int take(struct work_report *work, struct rxestat_bpf *skel, const struct work_key *key)
{
	int fd = bpf_map__fd(skel->maps.work_cells);
	struct work_key whole = *key;
	struct work_group *g;
	struct work_cell cell;

	if (bpf_map_lookup_elem(fd, key, &cell))
		return -errno;
	whole.half = 0;
	g = get(work, &whole);
	if (!g)
		return -ENOMEM;
	g->owner = owner_of(skel, key);
	add(g, &cell);
	return bpf_map_delete_elem(fd, key) ? -errno : 0;
}

int work_poll(struct work_report *work, struct rxestat_bpf *skel, bool half)
{
	struct work_key *keys, at;
	size_t n = 0;
	int fd, err = 0;

	if (!work->wanted)
		return 0;
	fd = bpf_map__fd(skel->maps.work_cells);
	keys = calloc(WORK_CELLS, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	/* the programs add keys of the other half meanwhile: a list first, then take each */
	err = bpf_map_get_next_key(fd, NULL, &at);
	while (!err && n < WORK_CELLS) {
		if (at.half == half)
			keys[n++] = at;
		err = bpf_map_get_next_key(fd, &at, &at);
	}
	err = 0;
	for (size_t i = 0; i < n && !err; i++)
		err = take(work, skel, &keys[i]);
	free(keys);
	return err;
}

static bool sees_completions(const char *program)
{
	return !strcmp(program, "work_raise");
}

void work_account(struct work_report *work, const struct rxestat_bpf *skel,
		  const struct session *session)
{
	if (!work->wanted)
		return;
	work->without_cell = skel->bss->work_without_cell;
	work->not_followed = skel->bss->work_not_followed;
	work->with_error = skel->bss->work_with_error;
	work->missed = session_missed(session, sees_completions);
}

void work_clear(struct work_report *work)
{
	free(work->groups);
	work->groups = NULL;
	work->ngroups = 0;
}

int work_forget(struct work_report *work, struct rxestat_bpf *skel)
{
	typeof(skel->bss) bss = skel->bss;

	if (!work->wanted)
		return 0;
	work_clear(work);
	memset(bss->work_posted, 0, sizeof(bss->work_posted));
	memset(bss->work_queues, 0, sizeof(bss->work_queues));
	bss->work_without_cell = bss->work_not_followed = bss->work_with_error = 0;
	return map_clear_keys(skel->maps.work_cells);
}

static void print_work(FILE *out, const struct work_group *g, bool histograms)
{
	const struct hist *h = &g->latency;
	char name[RDMA_DEV_NAME_LEN], left[RDMA_DEV_NAME_LEN + 40];

	snprintf(left, sizeof(left), "%s %u %s", rdma_dev_name(g->key.dev, name), g->key.qpn,
		 work_opcode_name(g->key.opcode));
	fprintf(out, "  %-30s %8" PRIu64 " %9.0f %9" PRIu64 " %9" PRIu64 " %9u\n", left,
		(uint64_t)h->count, hist_mean(h), (uint64_t)hist_quantile(h, 0.5),
		(uint64_t)hist_quantile(h, 0.99), h->max);
	if (histograms)
		print_histogram(out, h);
}

static void print_works(FILE *out, const struct work_report *work, const struct stat_owners *owners,
			bool histograms)
{
	unsigned int number[OWNER_GROUPS];
	int n = owners_sorted(owners, number);

	for (int o = 0; o < n; o++) {
		bool first = owners->by;

		for (size_t i = 0; i < work->ngroups; i++) {
			if (owners_group(owners, work->groups[i].owner) != number[o])
				continue;
			if (first) {
				fputs("  ", out);
				print_owner(out, owners, number[o]);
				fputc('\n', out);
			}
			first = false;
			print_work(out, &work->groups[i], histograms);
		}
	}
}

void print_work_table(FILE *out, const struct work_report *work, const struct stat_owners *owners,
		      bool histograms)
{
	if (!work->wanted)
		return;
	fprintf(out, "\nwork requests, from the doorbell to the completion\n");
	if (work->one_of > 1)
		fprintf(out, "  one of %u, chosen at random\n", work->one_of);
	if (work->ngroups)
		fprintf(out, "  %-30s %8s %9s %9s %9s %9s\n", "device, queue pair, opcode", "count",
			"mean ns", "p50", "p99", "max");
	print_works(out, work, owners, histograms);
	fprintf(out,
		"  not followed: %" PRIu64 ", without a cell: %" PRIu64
		", completed with an error: %" PRIu64 ", missed, with receives: %" PRIu64 "\n",
		(uint64_t)work->not_followed, (uint64_t)work->without_cell,
		(uint64_t)work->with_error, (uint64_t)work->missed);
}

static void put_group(struct json *j, const struct work_group *g, const struct stat_owners *owners)
{
	const struct hist *h = &g->latency;
	char name[RDMA_DEV_NAME_LEN];

	json_open_object(j, NULL);
	if (owners->by)
		json_string(j, "group", owners_name(owners, owners_group(owners, g->owner)));
	json_string(j, "dev", rdma_dev_name(g->key.dev, name));
	json_u64(j, "qpn", g->key.qpn);
	json_string(j, "opcode", work_opcode_name(g->key.opcode));
	put_sums(j, h);
	put_quantiles(j, h);
	json_close_object(j);
}

void put_work_json(struct json *j, const struct work_report *work, const struct stat_owners *owners)
{
	if (!work->wanted)
		return;
	json_open_object(j, "work_requests");
	json_u64(j, "not_followed", work->not_followed);
	json_u64(j, "without_cell", work->without_cell);
	json_u64(j, "with_error", work->with_error);
	json_u64(j, "missed", work->missed);
	json_open_array(j, "latency");
	for (size_t i = 0; i < work->ngroups; i++)
		put_group(j, &work->groups[i], owners);
	json_close_array(j);
	json_close_object(j);
}
