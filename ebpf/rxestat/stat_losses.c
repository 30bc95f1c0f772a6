// SPDX-License-Identifier: GPL-2.0-only
#include "stat_losses.h"

#include <string.h>

#include "drop.h"

/* tests compare these with the driver's lists (kernel/src/rxe_values.h) */
static const char *const retransmit_reasons[] = {"timeout", "rnr", "seq_nak", "implied_nak"};
static const char *const nak_directions[] = {"sent", "received"};
static const char *const rnr_steps[] = {"sent", "received", "expired"};

static const struct {
	const char *name;
	const char *const *reasons;
	unsigned int count;
} events[LOSS_EVENTS] = {
	[LOSS_DROP] = {"drop"},
	[LOSS_RETRANSMIT] = {"retransmit", retransmit_reasons, 4},
	[LOSS_TIMEOUT] = {"timeout"},
	[LOSS_NAK] = {"nak", nak_directions, 2},
	[LOSS_RNR] = {"rnr", rnr_steps, 3},
	[LOSS_CQ_ERROR] = {"cq_error"},
};

unsigned int losses_reasons(enum loss_event event)
{
	return event == LOSS_DROP ? DROP_COUNT : events[event].reasons ? events[event].count : 1;
}

const char *losses_reason(enum loss_event event, unsigned int reason)
{
	if (event == LOSS_DROP)
		return drop_name(reason);
	if (!events[event].reasons)
		return NULL;
	return reason < events[event].count ? events[event].reasons[reason] : "unknown";
}

bool losses_are_counted_by(const char *program)
{
	if (!strcmp(program, "rxe_drop_late"))
		return true;
	for (int e = 0; e < LOSS_EVENTS; e++) {
		if (!strncmp(program, "rxe_", 4) && !strcmp(program + 4, events[e].name))
			return true;
	}
	return false;
}

static const struct loss_place *find(const struct losses *l, unsigned int owner, __u32 tag)
{
	const struct loss_place *first = l->at + owner * LOSS_PLACES;

	if (!tag)
		return first + DEV_PLACES;
	for (int p = 0; p < DEV_PLACES; p++) {
		if (first[p].tag == tag)
			return first + p;
	}
	return NULL;
}

__u64 losses_count(const struct losses *l, unsigned int owner, __u32 tag, enum loss_event event,
		   unsigned int reason)
{
	const struct loss_place *place = find(l, owner, tag);

	return place ? place->count[event][reason] : 0;
}

bool losses_have(const struct losses *l, unsigned int owner, __u32 tag)
{
	const struct loss_place *place = find(l, owner, tag);

	for (int i = 0; place && i < LOSS_EVENTS * LOSS_REASONS; i++) {
		if (place->count[i / LOSS_REASONS][i % LOSS_REASONS])
			return true;
	}
	return false;
}

bool losses_next(const struct losses *l, unsigned int owner, int *at, struct loss *loss)
{
	for (; *at < LOSS_PLACES * LOSS_EVENTS * LOSS_REASONS; ++*at) {
		int reason = *at % LOSS_REASONS, event = *at / LOSS_REASONS % LOSS_EVENTS;
		int place = owner * LOSS_PLACES + *at / LOSS_REASONS / LOSS_EVENTS;

		if (!l->at[place].count[event][reason])
			continue;
		*loss = (struct loss){
			.place = place,
			.event = events[event].name,
			.reason = losses_reason(event, reason),
			.count = l->at[place].count[event][reason],
		};
		++*at;
		return true;
	}
	return false;
}
