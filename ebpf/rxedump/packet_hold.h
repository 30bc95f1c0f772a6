/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets between the ring buffer and the file, in order. Each waits, for a bounded time and in
 * bounded memory, for its last stages.
 */
#ifndef PACKET_HOLD_H
#define PACKET_HOLD_H

#include <stdbool.h>

#include "packet_text.h"

struct hold {
	/* set by the owner */
	struct dump_late *table; /* mapped from the programs */
	bool stock;
	__u64 patience_ns;
	/* takes a packet; false: enough */
	bool (*emit)(void *context, struct packet *packet);
	void *context;
	__u64 timed_out; /* written without their last stages after patience_ns */
	__u64 evicted;	 /* the same because memory was full, or the slot was reused */
	/* the queue */
	struct hold_entry *first, *last;
	size_t bytes;
	bool enough; /* emit() returned false */
};

/* One more record, copied if it must wait. False: out of memory, or enough. */
bool hold_push(struct hold *h, const struct dump_record *rec);
/* Emit what is complete or too old at that time; with all, everything. */
void hold_drain(struct hold *h, __u64 now_ns, bool all);
void hold_free(struct hold *h);
/* As if nothing had waited. */
void hold_reset(struct hold *h);

#endif /* PACKET_HOLD_H */
