// SPDX-License-Identifier: GPL-2.0-only
#include "loss_reader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stat_report.h"

#include "rxestat.skel.h"

int loss_reader_open(struct loss_reader *reader, struct losses *losses, int places)
{
	reader->places = losses->places = places;
	reader->now = calloc(places, sizeof(*reader->now));
	reader->before = calloc(places, sizeof(*reader->before));
	losses->at = calloc(places, sizeof(*losses->at));
	return reader->now && reader->before && losses->at ? 0 : -ENOMEM;
}

static void add_since(struct loss_place *into, const struct loss_place *now,
		      const struct loss_place *before)
{
	if (now->tag)
		into->tag = now->tag;
	for (int e = 0; e < LOSS_EVENTS; e++) {
		for (int r = 0; r < LOSS_REASONS; r++)
			into->count[e][r] += now->count[e][r] - before->count[e][r];
	}
}

int loss_reader_read(struct loss_reader *reader, const struct rxestat_bpf *skel,
		     const struct stat_owners *owners, struct losses *losses)
{
	int fd = bpf_map__fd(skel->maps.losses);

	memset(losses->at, 0, losses->places * sizeof(*losses->at));
	for (__u32 p = 0; p < (__u32)reader->places; p++) {
		unsigned int owner = loss_owner(p), group = owners_group(owners, owner);
		struct loss_place *into;

		if (!owners_known(owners, owner))
			continue;
		if (bpf_map_lookup_elem(fd, &p, &reader->now[p]))
			return -errno;
		into = &losses->at[group * LOSS_PLACES + p % LOSS_PLACES];
		if (into->tag && into->tag != reader->now[p].tag)
			into = &losses->at[group * LOSS_PLACES + DEV_PLACES];
		add_since(into, &reader->now[p], &reader->before[p]);
	}
	return 0;
}

void loss_reader_restart(struct loss_reader *reader)
{
	memcpy(reader->before, reader->now, reader->places * sizeof(*reader->now));
}

int loss_reader_forget(struct loss_reader *reader, const struct rxestat_bpf *skel)
{
	static const struct loss_place none;
	int fd = bpf_map__fd(skel->maps.losses);

	memset(reader->before, 0, reader->places * sizeof(*reader->before));
	for (__u32 p = 0; p < (__u32)reader->places; p++) {
		if (bpf_map_lookup_elem(fd, &p, &reader->now[p]))
			return -errno;
		if (memcmp(&reader->now[p], &none, sizeof(none)) &&
		    bpf_map_update_elem(fd, &p, &none, BPF_ANY))
			return -errno;
	}
	return 0;
}

void loss_reader_close(struct loss_reader *reader, struct losses *losses)
{
	free(reader->now);
	free(reader->before);
	free(losses->at);
	reader->now = reader->before = losses->at = NULL;
}
