/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options that select packets, for the probes that watch packets. */
#ifndef ROCELAB_PACKET_FILTER_H
#define ROCELAB_PACKET_FILTER_H

#include "place_options.h"

struct packet_filter {
	const char *device;	     /* NULL: all */
	__u32 qpn;		     /* 0: all */
	struct place_options places; /* of whose queue pairs */
	bool tx, rx;		     /* directions wanted */
	const char *opcodes;	     /* as they were given; NULL: all */
	bool chosen[256];	     /* opcodes wanted */
};

static inline bool packet_filter_by_owner(const struct packet_filter *f)
{
	return place_options_given(&f->places);
}

/* All packets. */
void packet_filter_init(struct packet_filter *f);
/* an option_part's; into: a struct packet_filter */
int packet_filter_take(void *into, int letter, char *value);
/* An opcode that passes, for calibration. */
__u8 packet_filter_opcode(const struct packet_filter *f);

#endif /* ROCELAB_PACKET_FILTER_H */
