// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session_options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void session_options_init(struct session_options *o)
{
	memset(o, 0, sizeof(*o));
	if (gethostname(o->node, sizeof(o->node) - 1))
		o->node[0] = '\0';
}

int session_options_take(void *into, int letter, char *value)
{
	struct session_options *o = into;

	switch (letter) {
	case 'n':
		snprintf(o->node, sizeof(o->node), "%s", value);
		return OPTION_TAKEN;
	case OPT_BPF_STATS:
		o->bpf_stats = true;
		return OPTION_TAKEN;
	default:
		return OPTION_OTHER;
	}
}
