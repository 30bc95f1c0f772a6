/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options that select packets, for the probes that watch packets. */
#ifndef ROCELAB_PACKET_FILTER_H
#define ROCELAB_PACKET_FILTER_H

#include "options.h"

struct packet_filter {
	const char *device; /* NULL: all */
	__u32 qpn;	    /* 0: all */
	/* of whose queue pairs; NULL: all */
	const char *cgroup, *netns;
	bool tx, rx;	     /* directions wanted */
	const char *opcodes; /* as they were given; NULL: all */
	bool chosen[256];    /* opcodes wanted */
};

static inline bool packet_filter_by_owner(const struct packet_filter *f)
{
	return f->cgroup || f->netns;
}

/* All packets. */
void packet_filter_init(struct packet_filter *f);
/* an option_part's; into: a struct packet_filter */
int packet_filter_take(void *into, int letter, char *value);
/* An opcode that passes, for calibration. */
__u8 packet_filter_opcode(const struct packet_filter *f);

#endif /* ROCELAB_PACKET_FILTER_H */
