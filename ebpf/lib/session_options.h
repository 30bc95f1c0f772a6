/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options of every probe. */
#ifndef ROCELAB_SESSION_OPTIONS_H
#define ROCELAB_SESSION_OPTIONS_H

#include <stdbool.h>

#include "options.h"

enum { OPT_BPF_STATS = 256, OPT_CONTROL };

struct session_options {
	char node[65];
	bool bpf_stats;
	bool control;	/* lib/control.h */
	char **command; /* NULL: until a signal */
};

/* The defaults: the node is this host. */
void session_options_init(struct session_options *o);
/* an option_part's; into: a struct session_options */
int session_options_take(void *into, int letter, char *value);
/* After parsing: -1, or the status to exit with after the error was printed. */
int session_options_check(const struct session_options *o);
/* The same for an option that --control does not go with. */
int session_options_refuse(const struct session_options *o, bool given, const char *option);

#endif /* ROCELAB_SESSION_OPTIONS_H */
