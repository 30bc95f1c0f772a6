// SPDX-License-Identifier: GPL-2.0-only
#include "cell_collector.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rxestat.skel.h"

/* stages that are counted together: head, sums, buckets */
struct part {
	size_t offset; /* in the cell */
	int stages;
	int first_stage;
	int sure_stage; /* one that every packet passes: it counts them */
	size_t counts;	/* offset in struct group; 0: none */
};

/* a cells map, and where its stages go */
struct source {
	struct bpf_map *cells;
	const union slot_entry *slot; /* by key */
	const __u32 *group_slot;      /* by kind and group; NULL: a kind has one cell */
	size_t cell_size;
	enum direction dir;
	struct part part[2]; /* the second may have no stages */
};

enum { SOURCES = 3 };

static void sources_of(const struct collector *c, struct source s[SOURCES])
{
	struct rxestat_bpf *b = c->skel;
	const __u32 *tx_groups = b->rodata->owner_by ? b->bss->tx_group_slot : NULL;
	const __u32 *rx_groups = b->rodata->owner_by ? b->bss->rx_group_slot : NULL;

	s[0] = (struct source){
		.cells = b->maps.tx_cells,
		.slot = b->bss->tx_slot,
		.group_slot = tx_groups,
		.cell_size = sizeof(struct tx_cell),
		.dir = DIR_TX,
		.part[0] = {.stages = RXE_TX_STAGES,
			    .sure_stage = RXE_TX_ICRC,
			    .counts = offsetof(struct group, seen)},
	};
	s[1] = (struct source){
		.cells = b->maps.xmit_cells,
		.slot = b->bss->tx_slot,
		.group_slot = tx_groups,
		.cell_size = sizeof(struct xmit_cell),
		.dir = DIR_TX,
		.part[0] = {.stages = 1, .first_stage = TX_XMIT},
	};
	s[2] = (struct source){
		.cells = b->maps.rx_cells,
		.slot = b->bss->rx_slot,
		.group_slot = rx_groups,
		.cell_size = sizeof(struct rx_cell),
		.dir = DIR_RX,
		.part[0] = {.stages = RXE_RX_STAGES,
			    .sure_stage = RXE_RX_ICRC,
			    .counts = offsetof(struct group, seen)},
		.part[1] = {.offset = offsetof(struct rx_cell, done),
			    .stages = RXE_DONE_STAGES,
			    .first_stage = RX_DONE,
			    .sure_stage = RXE_DONE_EXEC,
			    .counts = offsetof(struct group, done)},
	};
}

int collector_open(struct collector *c, struct rxestat_bpf *skel)
{
	struct source s[SOURCES];
	size_t most = 0;

	c->skel = skel;
	c->slots = skel->rodata->slots;
	c->ncpus = libbpf_num_possible_cpus();
	if (c->ncpus < 0)
		return c->ncpus;
	sources_of(c, s);
	for (int i = 0; i < SOURCES; i++)
		most = s[i].cell_size > most ? s[i].cell_size : most;
	c->buffer = calloc(c->ncpus, most);
	c->fresh = calloc(c->ncpus, most);
	if (!c->buffer || !c->fresh) {
		collector_close(c);
		return -ENOMEM;
	}
	return quiesce_open(&c->quiesce);
}

void collector_close(struct collector *c)
{
	free(c->buffer);
	free(c->fresh);
	c->buffer = c->fresh = NULL;
	quiesce_close(&c->quiesce);
}

/* an empty cell of a source on every CPU: all zero, the minima at the top */
static void make_fresh(const struct collector *c, const struct source *s)
{
	memset(c->fresh, 0, c->ncpus * s->cell_size);
	for (int cpu = 0; cpu < c->ncpus; cpu++) {
		char *cell = (char *)c->fresh + cpu * s->cell_size;

		for (int p = 0; p < 2; p++) {
			struct stage_sum *sum =
				(void *)(cell + s->part[p].offset + sizeof(struct cell_head));

			for (int i = 0; i < s->part[p].stages; i++)
				sum[i].min = ~0u;
		}
	}
}

static int refresh(const struct collector *c, const struct source *s, __u32 index)
{
	return bpf_map_update_elem(bpf_map__fd(s->cells), &index, c->fresh, BPF_ANY) ? -errno : 0;
}

/* of both halves; end: the first slot that is fresh already */
static int refresh_until(const struct collector *c, const struct source *s, __u32 end)
{
	int err = 0;

	make_fresh(c, s);
	for (__u32 slot = 0; slot < end && slot < c->slots && !err; slot++)
		err = refresh(c, s, slot) ?: refresh(c, s, c->slots + slot);
	return err;
}

int collector_prepare(struct collector *c)
{
	struct source s[SOURCES];
	int err = 0;

	sources_of(c, s);
	for (int i = 0; i < SOURCES && !err; i++)
		err = refresh_until(c, &s[i], c->slots);
	return err;
}

/* the first slot of a source that no packet has */
static __u32 first_unused(const struct collector *c, const struct source *s)
{
	typeof(c->skel->data) data = c->skel->data;

	if (s->dir == DIR_TX)
		return s->group_slot ? data->tx_group_used : data->tx_used;
	return s->group_slot ? data->rx_group_used : data->rx_used;
}

int collector_forget(struct collector *c)
{
	typeof(c->skel->bss) bss = c->skel->bss;
	struct source s[SOURCES];
	int err = 0;

	sources_of(c, s);
	for (int i = 0; i < SOURCES && !err; i++) {
		__u32 end = first_unused(c, &s[i]);

		/* calibration of xmit has the first one without asking */
		err = refresh_until(c, &s[i], end > SLOT_FIRST ? end : SLOT_FIRST + 1);
	}
	memset(bss->tx_slot, 0, sizeof(bss->tx_slot));
	memset(bss->rx_slot, 0, sizeof(bss->rx_slot));
	memset(bss->tx_group_slot, 0, sizeof(bss->tx_group_slot));
	memset(bss->rx_group_slot, 0, sizeof(bss->rx_group_slot));
	memset(bss->xmit_table, 0, sizeof(bss->xmit_table));
	c->skel->data->tx_used = c->skel->data->rx_used = SLOT_FIRST;
	c->skel->data->tx_group_used = c->skel->data->rx_group_used = SLOT_FIRST;
	bss->lost = 0;
	return err;
}

static void add_part(const char *cell, const struct part *s, struct group *g)
{
	const struct cell_head *head = (const void *)(cell + s->offset);
	const struct stage_sum *sum = (const void *)(head + 1);
	const __u64(*bucket)[LOGLIN_SLOTS] = (const void *)(sum + s->stages);

	if (s->counts) {
		struct counts *counts = (void *)((char *)g + s->counts);

		counts->switched += head->switched;
		counts->slept += head->slept;
		counts->loopback += head->loopback;
	}
	for (int i = 0; i < s->stages; i++) {
		struct hist one = {.sum = sum[i].far, .min = sum[i].min, .max = sum[i].max};

		for (int b = 0; b < LOGLIN_BUCKETS; b++)
			packed_read(bucket[i][b], b, &one);
		hist_merge(&g->stage[s->first_stage + i], &one);
		if (s->counts && i == s->sure_stage)
			((struct counts *)((char *)g + s->counts))->packets += one.count;
	}
}

static int poll_cell(struct collector *c, const struct source *s, __u32 index, unsigned int owner,
		     __u32 key, struct groups *groups)
{
	struct group *g;

	if (bpf_map_lookup_elem(bpf_map__fd(s->cells), &index, c->buffer))
		return -errno;
	/* nothing to add or to reset */
	if (!memcmp(c->buffer, c->fresh, c->ncpus * s->cell_size))
		return 0;
	g = groups_get(groups, owner, s->dir, key);
	if (!g)
		return -ENOMEM;
	for (int cpu = 0; cpu < c->ncpus; cpu++) {
		const char *cell = (char *)c->buffer + cpu * s->cell_size;

		for (int p = 0; p < 2; p++)
			add_part(cell, &s->part[p], g);
	}
	return refresh(c, s, index);
}

/* the cells of a kind of packets, one for each owner */
static int poll_kind(struct collector *c, const struct source *s, __u32 half, __u32 kind, __u32 key,
		     const struct stat_owners *owners, struct groups *groups)
{
	int err = 0;

	if (!s->group_slot)
		return poll_cell(c, s, half + kind, OWNER_UNKNOWN, key, groups);
	for (unsigned int i = 0; i < OWNER_GROUPS && !err; i++) {
		__u32 slot =
			__atomic_load_n(&s->group_slot[kind * OWNER_GROUPS + i], __ATOMIC_RELAXED);

		if (slot != SLOT_NONE)
			err = poll_cell(c, s, half + slot, owners_group(owners, i), key, groups);
	}
	return err;
}

static int poll_source(struct collector *c, const struct source *s, __u32 half,
		       const struct stat_owners *owners, struct groups *groups)
{
	int err = 0;

	make_fresh(c, s);
	for (__u32 key = 0; key < KEYS && !err; key++) {
		union slot_entry entry = {
			.word = __atomic_load_n(&s->slot[key].word, __ATOMIC_RELAXED),
		};

		if (entry.word)
			err = poll_kind(c, s, half, entry.slot, key, owners, groups);
	}
	return err;
}

int collector_poll(struct collector *c, struct stat_owners *owners, struct groups *groups)
{
	struct source s[SOURCES];
	__u32 half = c->skel->bss->half;
	int err;

	__atomic_store_n(&c->skel->bss->half, half ? 0 : c->slots, __ATOMIC_RELEASE);
	err = quiesce_wait(&c->quiesce);
	/* after the wait: whoever has a packet in this half has a number */
	err = err ?: owners_read(owners, c->skel);
	sources_of(c, s);
	for (int i = 0; i < SOURCES && !err; i++)
		err = poll_source(c, &s[i], half, owners, groups);
	return err;
}

void collector_devices(const struct collector *c, __u32 devices[DEV_PLACES])
{
	struct source s[SOURCES];

	memset(devices, 0, DEV_PLACES * sizeof(devices[0]));
	sources_of(c, s);
	for (int i = 0; i < SOURCES; i++) {
		for (__u32 key = 0; key < KEYS; key++) {
			if (s[i].slot[key].tag)
				devices[key_dev(key)] = s[i].slot[key].tag;
		}
	}
}
