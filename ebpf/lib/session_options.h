/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options of every probe. */
#ifndef ROCELAB_SESSION_OPTIONS_H
#define ROCELAB_SESSION_OPTIONS_H

#include <stdbool.h>

#include "options.h"

enum { OPT_BPF_STATS = 256 };

struct session_options {
	char node[65];
	bool bpf_stats;
	char **command; /* NULL: until a signal */
};

/* The defaults: the node is this host. */
void session_options_init(struct session_options *o);
/* an option_part's; into: a struct session_options */
int session_options_take(void *into, int letter, char *value);

#endif /* ROCELAB_SESSION_OPTIONS_H */
