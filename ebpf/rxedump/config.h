/* SPDX-License-Identifier: GPL-2.0-only */
/* What the command line asks for. */
#ifndef RXEDUMP_CONFIG_H
#define RXEDUMP_CONFIG_H

#include <linux/types.h>
#include <stdbool.h>

struct config {
	const char *device; /* NULL: all */
	__u32 qpn;	    /* 0: all */
	bool tx, rx;	    /* directions wanted */
	bool chosen[256];   /* opcodes wanted */
	bool all_opcodes;
	const char *opcodes; /* as they were given; NULL: all */
	__u32 snap_length;   /* bytes of a frame, from its Ethernet header on */
	bool whole;	     /* no limit was wanted */
	__u32 sample;	     /* 1 in so many */
	__u32 count;	     /* 0: until the end */
	const char *output;  /* NULL: lines on standard output; "-": pcapng there */
	__u32 file_mb;	     /* 0: no rotation */
	__u32 files;	     /* 0: as many as come */
	__u32 buffer_kib;
	__u32 patience_ms;
	char node[65];
	bool bpf_stats;
	char **command; /* NULL: until a signal */
};

/*
 * Parse the command line. Returns -1 to go on, else the status to exit with (help and version
 * have been printed, or the error).
 */
int config_parse(struct config *config, int argc, char **argv);

#endif /* RXEDUMP_CONFIG_H */
