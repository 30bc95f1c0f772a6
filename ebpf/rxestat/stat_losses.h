/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver's rare events since a moment. */
#ifndef STAT_LOSSES_H
#define STAT_LOSSES_H

#include <stdbool.h>

#include "loss.h"

struct losses {
	bool known; /* the stock driver has no such events */
	/* LOSS_PLACES of each owner, or of one without --group */
	int places;
	struct loss_place *at;
};

static inline unsigned int loss_owner(int place)
{
	return place / LOSS_PLACES;
}

/* one number of them; event and reason are words of docs/events.md */
struct loss {
	int place;
	const char *event, *reason; /* reason: NULL if the event has none */
	__u64 count;
};

/* Whether it is one of the programs that count them. */
bool losses_are_counted_by(const char *program);
/* How many reasons an event has, and their names; NULL if an event has only one kind. */
unsigned int losses_reasons(enum loss_event event);
const char *losses_reason(enum loss_event event, unsigned int reason);
/* owner: a number of l; tag: of the device; 0: of packets that belong to none */
__u64 losses_count(const struct losses *l, unsigned int owner, __u32 tag, enum loss_event event,
		   unsigned int reason);
/* Whether the owner has had losses of the device. */
bool losses_have(const struct losses *l, unsigned int owner, __u32 tag);
/* Each number of an owner that is not 0, in turn; *at begins as 0. False: there are no more. */
bool losses_next(const struct losses *l, unsigned int owner, int *at, struct loss *loss);

#endif /* STAT_LOSSES_H */
