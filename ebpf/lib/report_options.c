// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_options.h"

#include <stdio.h>

#include "msg.h"

#define MAX_MS 86400000

static int take_interval(struct report_options *o, const char *value)
{
	char what[64];

	if (option_number(value, MAX_MS, &o->interval_ms) && o->interval_ms >= o->least_ms)
		return OPTION_TAKEN;
	snprintf(what, sizeof(what), "--interval takes %u to %u (ms), not", o->least_ms ?: 1,
		 MAX_MS);
	return option_error(what, value);
}

int report_options_take(void *into, int letter, char *value)
{
	struct report_options *o = into;

	switch (letter) {
	case 'I':
		return take_interval(o, value);
	case 'c':
		return option_take_number(value, 0x7fffffff, &o->count,
					  "--count takes a positive number, not");
	case 'j':
		o->json = true;
		return OPTION_TAKEN;
	case 'o':
		o->output = value;
		return value[0] ? OPTION_TAKEN
				: option_error("--output takes a file name, not", value);
	default:
		return OPTION_OTHER;
	}
}

int report_options_check(const struct report_options *o)
{
	if (o->count && !o->interval_ms)
		return msg_error(EXIT_USAGE, NULL, "add --interval MS", "--count needs --interval");
	return -1;
}
