/* SPDX-License-Identifier: GPL-2.0-only */
/* What the command line asks for, and what keys change. */
#ifndef TOP_OPTIONS_H
#define TOP_OPTIONS_H

#include "place_options.h"
#include "rxetop.h"
#include "session_options.h"
#include "top_columns.h"

struct config {
	bool batch, json;
	__u32 iterations; /* 0: until a signal */
	__u32 interval_ms;
	const char *device; /* NULL: all */
	struct place_options places;
	__u32 one_of;
	struct stage_choice stage;
	struct selection selection;
	enum view view;
	struct session_options session;
};

/* -1 to continue, else the status to exit with; help, version or an error has been printed */
int config_parse(struct config *config, int argc, char **argv);

#endif /* TOP_OPTIONS_H */
