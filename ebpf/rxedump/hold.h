/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets on their way from the ring buffer to the file, in its order. Each waits, for a bounded
 * time and in bounded memory, until the rest of its stages has come.
 */
#ifndef RXEDUMP_HOLD_H
#define RXEDUMP_HOLD_H

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
	/* what became of them */
	__u64 timed_out; /* written without their last stages after the time */
	__u64 evicted;	 /* written so because memory was full, or the slot was taken */
	/* the queue */
	struct hold_entry *first, *last;
	size_t bytes;
	bool enough; /* emit() wants no more */
};

/* One more record (copied if need be). False: out of memory, or enough. */
bool hold_push(struct hold *h, const struct dump_record *rec);
/* Hand on what is complete, or too old at that time; with all, everything. */
void hold_drain(struct hold *h, __u64 now_ns, bool all);
void hold_free(struct hold *h);

#endif /* RXEDUMP_HOLD_H */
