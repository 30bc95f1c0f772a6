/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the cells that the BPF programs fill. */
#ifndef CELL_COLLECTOR_H
#define CELL_COLLECTOR_H

#include "quiesce.h"
#include "stat_report.h"

struct rxestat_bpf;

struct collector {
	struct rxestat_bpf *skel;
	struct quiesce quiesce;
	int ncpus;
	unsigned int slots;
	void *buffer; /* one cell of every CPU */
	void *fresh;  /* the same, with nothing counted */
};

/* 0 or a negative errno */
int collector_open(struct collector *c, struct rxestat_bpf *skel);
void collector_close(struct collector *c);
/* Make every cell fresh: before any program has run. 0 or a negative errno. */
int collector_prepare(struct collector *c);
/* Forget what was counted and which cells have it. Only while no program is attached. */
int collector_forget(struct collector *c);
/*
 * Add to groups what was counted since the last poll. The programs switch to the other half of the
 * cells, and the poll waits for those still running in this one: a packet is in exactly one poll,
 * with its minimum and maximum. Owners that are new are named before.
 */
int collector_poll(struct collector *c, struct stat_owners *owners, struct groups *groups);
/* Index + 1 of the device at each place in the keys, 0 for none. */
void collector_devices(const struct collector *c, __u32 devices[DEV_PLACES]);

#endif /* CELL_COLLECTOR_H */
