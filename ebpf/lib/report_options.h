/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options of the probes that report sums: interval, format and destination. */
#ifndef ROCELAB_REPORT_OPTIONS_H
#define ROCELAB_REPORT_OPTIONS_H

#include "options.h"

struct report_options {
	unsigned int least_ms;	  /* the shortest interval; set before parsing, 1 otherwise */
	unsigned int interval_ms; /* 0: once, at the end */
	unsigned int count;	  /* 0: until the end */
	bool json;
	const char *output; /* NULL: standard output */
};

/* an option_part's; into: a struct report_options */
int report_options_take(void *into, int letter, char *value);
/* After parsing: -1, or the status to exit with after the error was printed. */
int report_options_check(const struct report_options *o);

#endif /* ROCELAB_REPORT_OPTIONS_H */
