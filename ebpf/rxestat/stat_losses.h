/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver's rare events since a moment. */
#ifndef STAT_LOSSES_H
#define STAT_LOSSES_H

#include <stdbool.h>

#include "loss.h"

struct losses {
	bool known; /* the stock driver has no such events */
	struct loss_place at[LOSS_PLACES];
};

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
/* tag: of the device; 0: of packets that belong to none */
__u64 losses_count(const struct losses *l, __u32 tag, enum loss_event event, unsigned int reason);
/* From counters that only grow: what came after `before`. */
void losses_since(struct losses *l, const struct loss_place *now, const struct loss_place *before);
/* Each number that is not 0, in turn; *at begins as 0. False: there are no more. */
bool losses_next(const struct losses *l, int *at, struct loss *loss);

#endif /* STAT_LOSSES_H */
