/* SPDX-License-Identifier: GPL-2.0-only */
/* What the command line asks for. */
#ifndef DUMP_OPTIONS_H
#define DUMP_OPTIONS_H

#include "message_follow.h"
#include "packet_filter.h"
#include "session_options.h"

struct config {
	struct packet_filter filter;
	struct session_options session;
	struct follow follow;
	__u32 snap_length;  /* bytes of a frame, from its Ethernet header on */
	bool whole;	    /* no limit was wanted */
	__u32 sample;	    /* 1 in so many */
	__u32 count;	    /* 0: until the end */
	const char *output; /* NULL: lines on standard output; "-": pcapng there */
	__u32 file_mb;	    /* 0: no rotation */
	__u32 files;	    /* 0: all are kept */
	__u32 buffer_kib;
	__u32 hold_ms;
};

/*
 * Parse the command line. Returns -1 to continue, else the status to exit with (help and version
 * have been printed, or the error).
 */
int config_parse(struct config *config, int argc, char **argv);

#endif /* DUMP_OPTIONS_H */
