// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "place_options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "msg.h"

int place_options_take(void *into, int letter, char *value)
{
	struct place_options *o = into;

	switch (letter) {
	case 'p':
		return option_take_pids(value, o->pids, &o->npids, PLACE_PIDS);
	case 'G':
		o->cgroup = value;
		return OPTION_TAKEN;
	case 'N':
		o->netns = value;
		return *value ? OPTION_TAKEN
			      : option_error("--netns takes a name or a file, not", value);
	default:
		return OPTION_OTHER;
	}
}

int place_options_find(const struct place_options *o, struct task_places *places)
{
	int status = o->cgroup ? cgroup_find(o->cgroup, &places->cgroup) : 0;

	if (!status && o->netns)
		status = netns_find(o->netns, &places->netns);
	for (unsigned int i = 0; i < o->npids && !status; i++)
		status = process_find(o->pids[i]);
	memcpy(places->pids, o->pids, sizeof(places->pids));
	return status;
}

const char *place_options_pids(const struct place_options *o, char text[PLACE_PIDS_TEXT])
{
	int length = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < o->npids; i++)
		length += snprintf(text + length, PLACE_PIDS_TEXT - length, "%s%u", i ? "," : "",
				   o->pids[i]);
	return o->npids ? text : NULL;
}
