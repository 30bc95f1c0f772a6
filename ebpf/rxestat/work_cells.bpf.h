/* SPDX-License-Identifier: GPL-2.0-only */
/* Adds the latency of a work request to the cell of its queue pair and opcode. */
#ifndef WORK_CELLS_BPF_H
#define WORK_CELLS_BPF_H

#include "cells.bpf.h"
#include "work_cells.h"
#include "work_request.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WORK_CELLS);
	__type(key, struct work_key);
	__type(value, struct work_cell);
} work_cells SEC(".maps");

const volatile struct work_cell fresh_work_cell = {.sum = {.min = ~0u}};

__u64 work_without_cell = 0, work_not_followed = 0, work_with_error = 0;

static __always_inline void work_completed(const struct work_completion *c)
{
	struct work_key key = {.dev = c->dev, .qpn = c->qpn, .opcode = c->opcode};
	struct work_cell *cell;

	if (filtered && !passes(c->dev, c->qpn))
		return;
	key.half = half != 0;
	cell = bpf_map_lookup_elem(&work_cells, &key);
	if (unlikely(!cell)) {
		bpf_map_update_elem(&work_cells, &key, (const void *)&fresh_work_cell, BPF_NOEXIST);
		cell = bpf_map_lookup_elem(&work_cells, &key);
		if (!cell) {
			__sync_fetch_and_add(&work_without_cell, 1);
			return;
		}
	}
	account(cell, &cell->sum, __builtin_offsetof(struct work_cell, bucket), bucket_table,
		c->ns);
}

static __always_inline void work_unseen(__u32 dev, __u32 qpn)
{
	if (!filtered || passes(dev, qpn))
		__sync_fetch_and_add(&work_not_followed, 1);
}

static __always_inline void work_failed(__u32 dev, __u32 qpn)
{
	if (!filtered || passes(dev, qpn))
		__sync_fetch_and_add(&work_with_error, 1);
}

#endif /* WORK_CELLS_BPF_H */
