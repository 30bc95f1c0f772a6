/* SPDX-License-Identifier: GPL-2.0-only */
/* What the command line asks for. */
#ifndef CPU_OPTIONS_H
#define CPU_OPTIONS_H

#include "report_options.h"
#include "rxecpu.h"
#include "session_options.h"

#define MAX_PIDS 64

enum { OPT_STACKS = 512 };

struct config {
	const char *device; /* NULL: all */
	__u32 pids[MAX_PIDS];
	unsigned int npids;
	char comms[MAX_COMMS][COMM_BYTES];
	unsigned int ncomms;
	const char *cgroup; /* NULL: none */
	bool per_cpu;
	const char *stacks; /* file; NULL: none */
	struct report_options report;
	struct session_options session;
};

/*
 * Parse the command line. Returns -1 to continue, else the status to exit with (help and version
 * have been printed, or the error).
 */
int config_parse(struct config *config, int argc, char **argv);

#endif /* CPU_OPTIONS_H */
