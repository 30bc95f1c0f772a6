// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session_options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "msg.h"

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
	case 'v':
		msg_verbose = true;
		return OPTION_TAKEN;
	case OPT_BPF_STATS:
		o->bpf_stats = true;
		return OPTION_TAKEN;
	case OPT_CONTROL:
		o->control = true;
		return OPTION_TAKEN;
	default:
		return OPTION_OTHER;
	}
}

int session_options_check(const struct session_options *o)
{
	return session_options_refuse(o, o->command, "a command");
}

int session_options_refuse(const struct session_options *o, bool given, const char *option)
{
	return o->control && given
		       ? msg_error(EXIT_USAGE, "standard input says when a window begins and ends",
				   "leave out one of them", "--control does not go with %s", option)
		       : -1;
}
