/* SPDX-License-Identifier: GPL-2.0-only */
/* What the command line asks for. */
#ifndef STAT_OPTIONS_H
#define STAT_OPTIONS_H

#include "owner_group.h"
#include "packet_filter.h"
#include "report_options.h"
#include "sample.h"
#include "session_options.h"

enum { OPT_OPENMETRICS = 512 };

struct config {
	bool xmit; /* follow sent packets to the device */
	bool work_requests;
	bool histograms;	 /* in tables; JSON always has them */
	enum owner_by by;	 /* the groups */
	const char *event;	 /* that processors count in kernel mode */
	const char *openmetrics; /* where to serve them; NULL: nowhere */
	__u32 one_of;		 /* look at one of so many packets */
	struct packet_filter filter;
	struct report_options report;
	struct session_options session;
};

/*
 * Parse the command line. Returns -1 to continue, else the status to exit with (help and version
 * have been printed, or the error).
 */
int config_parse(struct config *config, int argc, char **argv);

#endif /* STAT_OPTIONS_H */
