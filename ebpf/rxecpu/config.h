/* SPDX-License-Identifier: GPL-2.0-only */
/* What the command line asks for. */
#ifndef RXECPU_CONFIG_H
#define RXECPU_CONFIG_H

#include <linux/types.h>
#include <stdbool.h>

#include "rxecpu.h"

#define MAX_PIDS 64

struct config {
	const char *device; /* NULL: all */
	__u32 pids[MAX_PIDS];
	unsigned int npids;
	char comms[MAX_COMMS][COMM_BYTES];
	unsigned int ncomms;
	const char *cgroup; /* NULL: none */
	bool per_cpu;
	unsigned int interval_ms; /* 0: once */
	unsigned int count;	  /* 0: until the end */
	bool json;
	const char *output; /* NULL: standard output */
	char node[65];
	bool bpf_stats;
	char **command; /* NULL: until a signal */
};

/*
 * Parse the command line. Returns -1 to go on, else the status to exit with (help and version
 * have been printed, or the error).
 */
int config_parse(struct config *config, int argc, char **argv);

#endif /* RXECPU_CONFIG_H */
