// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An update of a map of maps returns only after every program that may hold the old inner map
 * has ended (kernel commit 1ae80cf31938 ("bpf: wait for running BPF programs when updating
 * map-in-map")). This map of maps exists only for that.
 */
#include "quiesce.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/types.h>
#include <unistd.h>

int quiesce_open(struct quiesce *q)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);

	q->outer = -1;
	q->inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "quiesce_in", 4, 4, 1, NULL);
	if (q->inner < 0)
		return -errno;
	opts.inner_map_fd = q->inner;
	q->outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "quiesce", 4, 4, 1, &opts);
	if (q->outer < 0) {
		int err = -errno;

		quiesce_close(q);
		return err;
	}
	return 0;
}

int quiesce_wait(const struct quiesce *q)
{
	__u32 key = 0;

	return bpf_map_update_elem(q->outer, &key, &q->inner, BPF_ANY) ? -errno : 0;
}

void quiesce_close(struct quiesce *q)
{
	if (q->outer >= 0)
		close(q->outer);
	if (q->inner >= 0)
		close(q->inner);
	q->outer = q->inner = -1;
}
