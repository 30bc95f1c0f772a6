/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts an event on all processors, such as their cycles (perf_event_open). Counting costs
 * nothing but the readings.
 */
#ifndef ROCELAB_EVENT_COUNTER_H
#define ROCELAB_EVENT_COUNTER_H

#include <linux/types.h>
#include <stdbool.h>

#define EVENT_CYCLES "cycles"
/* for messages; software events need no performance counter */
#define EVENT_NAMES "cycles, cpu-clock or context-switches"

/* where a counter stood: its value, for how long it was wanted, and for how long it ran */
struct event_reading {
	__u64 value, enabled, running;
};

struct event_counter {
	int processors; /* 0: nothing is counted */
	int *fds;
	struct event_reading *last;
};

struct event_count {
	double value; /* where the counter was shared: scaled to the whole time */
	double share; /* of the time in which it counted */
};

bool event_is_known(const char *event);
/*
 * Start to count, in kernel mode only if so. Returns 0, or -errno if this machine has no such
 * counter or this process no right to it; then nothing is counted.
 */
int event_counter_open(struct event_counter *c, const char *event, bool kernel_only);
/*
 * What was counted since the last reading, or since the start. False if that is not known: nothing
 * is counted, or a counter never ran.
 */
bool event_counter_read(struct event_counter *c, struct event_count *count);
/* The same, and the next reading begins where this one did. */
bool event_counter_look(struct event_counter *c, struct event_count *count);
void event_counter_close(struct event_counter *c);

#endif /* ROCELAB_EVENT_COUNTER_H */
