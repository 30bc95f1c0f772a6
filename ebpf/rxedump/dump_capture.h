/* SPDX-License-Identifier: GPL-2.0-only */
/* From complete packets to what is written: a pcapng file with its blocks, or lines. */
#ifndef DUMP_CAPTURE_H
#define DUMP_CAPTURE_H

#include <stdbool.h>

#include "calibrate.h"
#include "dump_options.h"
#include "dump_interfaces.h"
#include "link_header.h"
#include "dump_output.h"
#include "packet_text.h"
#include "session.h"

/* packets that should be in the file, and are not */
struct losses {
	__u64 ring;			 /* the ring buffer was full */
	__u64 nested;			 /* a program was at work on that CPU already */
	__u64 interface[MAX_INTERFACES]; /* of ring, by interface */
	/* packets in the file without their last stages */
	__u64 timed_out, evicted;
};

struct capture {
	const struct config *config;
	const struct session *session;
	struct calibration cost;
	struct output out;
	struct interfaces interfaces;
	struct links links;
	struct follow follow; /* as config has it, and how far it is */
	int described;	      /* interfaces that the file knows */
	__u64 wall_ns;	      /* CLOCK_REALTIME - CLOCK_MONOTONIC, for the whole session */
	__u64 packets;	      /* written */
	int error;	      /* negative errno of a file that could not be opened */
	struct losses losses; /* as of the last account; a file that is full is closed with them */
};

/* As if nothing had been written: for the next file. */
void capture_reset(struct capture *c);
/* 0 or a negative errno */
int capture_open(struct capture *c);
/* One packet. False: enough, or it cannot be written. */
bool capture_packet(struct capture *c, struct packet *p);
/* Statistics blocks for all interfaces, as of now (CLOCK_MONOTONIC). */
void capture_statistics(struct capture *c, __u64 now_ns);
/* The last blocks. 0 or a negative errno. */
int capture_close(struct capture *c, __u64 now_ns);
void capture_free(struct capture *c);

#endif /* DUMP_CAPTURE_H */
