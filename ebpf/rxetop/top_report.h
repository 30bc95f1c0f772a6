/* SPDX-License-Identifier: GPL-2.0-only */
/* What one look found; top_screen.c and top_json.c print it. */
#ifndef TOP_REPORT_H
#define TOP_REPORT_H

#include <stdio.h>

#include "sample.h"
#include "session.h"
#include "top_options.h"

struct report {
	struct session session;
	struct sample sample;
	struct qp_list list;
	__u32 number; /* of the look, from 1 */
	/* since the start: drops that belong to no queue pair, what there was no room for */
	__u64 other_drops[DROP_PLACES];
	__u64 lost, missed;
};

/* what this driver cannot show, one at a time; NULL at the end */
const char *report_missing(const struct report *report, int number);

void print_json(FILE *out, const struct report *report, const struct config *config);

#endif /* TOP_REPORT_H */
