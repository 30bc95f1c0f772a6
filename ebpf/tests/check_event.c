// SPDX-License-Identifier: GPL-2.0-only
/* What is made of readings as the kernel gives them, here through pipes. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "event_counter.h"

static int kernel[2]; /* ends that write */

static struct event_counter two_processors(void)
{
	struct event_counter c = {.processors = 2};

	c.fds = calloc(2, sizeof(*c.fds));
	c.last = calloc(2, sizeof(*c.last));
	for (int i = 0; i < 2; i++) {
		int ends[2];

		if (pipe(ends))
			exit(1);
		c.fds[i] = ends[0];
		kernel[i] = ends[1];
	}
	return c;
}

static void say(int processor, __u64 value, __u64 enabled, __u64 running)
{
	struct event_reading reading = {value, enabled, running};

	if (write(kernel[processor], &reading, sizeof(reading)) != sizeof(reading))
		exit(1);
}

static void expect(struct event_counter *c, bool known, double value, double share)
{
	struct event_count count;
	bool is_known = event_counter_read(c, &count);

	CHECK(is_known == known, "%d, not %d", is_known, known);
	if (known)
		CHECK(count.value == value && count.share == share, "%f of %f, not %f of %f",
		      count.value, count.share, value, share);
}

int main(void)
{
	struct event_counter c = {};
	struct event_count count;

	CHECK(event_is_known("cycles") && event_is_known("cpu-clock"), "a name is missing");
	CHECK(!event_is_known("branches") && !event_is_known(""), "a name too many");
	CHECK(event_counter_open(&c, "branches", true) < 0, "an unknown event");
	CHECK(!event_counter_read(&c, &count), "nothing is counted, but known");
	event_counter_close(&c);

	c = two_processors();
	say(0, 100, 1000, 1000);
	say(1, 20, 1000, 1000);
	expect(&c, true, 120, 1);
	/* only what came since; one shared its counter for half of the time */
	say(0, 130, 2000, 2000);
	say(1, 70, 2000, 1500);
	expect(&c, true, 30 + 2 * 50, 0.75);
	/* one never ran: the sum is not known, but the next one is */
	say(0, 140, 3000, 3000);
	say(1, 70, 3000, 1500);
	expect(&c, false, 0, 0);
	say(0, 150, 4000, 4000);
	say(1, 75, 4000, 2500);
	expect(&c, true, 15, 1);
	/* one went off line, which counts nothing more */
	say(0, 160, 5000, 5000);
	say(1, 75, 4000, 2500);
	expect(&c, true, 10, 1);
	event_counter_close(&c);
	CHECK(!c.processors && !c.fds, "it is still open");
	return check_end("event");
}
