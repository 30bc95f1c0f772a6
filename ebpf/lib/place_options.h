/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options that choose queue pairs by their processes, for the probes that watch queue pairs. */
#ifndef ROCELAB_PLACE_OPTIONS_H
#define ROCELAB_PLACE_OPTIONS_H

#include "options.h"
#include "task_place.h"

/* NULL, none: all */
struct place_options {
	const char *cgroup, *netns;
	__u32 pids[PLACE_PIDS];
	unsigned int npids;
};

static inline bool place_options_given(const struct place_options *o)
{
	return o->cgroup || o->netns || o->npids;
}

/* an option_part's; into: a struct place_options */
int place_options_take(void *into, int letter, char *value);
/* Look up what they name. Returns 0, or prints the error and returns the exit status. */
int place_options_find(const struct place_options *o, struct task_places *places);
/* the process IDs as a list: "17,18" */
#define PLACE_PIDS_TEXT (PLACE_PIDS * 8)
const char *place_options_pids(const struct place_options *o, char text[PLACE_PIDS_TEXT]);

#endif /* ROCELAB_PLACE_OPTIONS_H */
