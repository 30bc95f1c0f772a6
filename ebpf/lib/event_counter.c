// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "event_counter.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	__u32 type;
	__u64 config;
} events[] = {
	{EVENT_CYCLES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
};

static int find(const char *event)
{
	int at = sizeof(events) / sizeof(events[0]) - 1;

	while (at >= 0 && strcmp(events[at].name, event))
		at--;
	return at;
}

bool event_is_known(const char *event)
{
	return find(event) >= 0;
}

int event_counter_open(struct event_counter *c, const char *event, bool kernel_only)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	int at = find(event), err = 0;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.exclude_user = kernel_only,
	};

	*c = (struct event_counter){};
	if (at < 0 || online < 1)
		return -EINVAL;
	attr.type = events[at].type;
	attr.config = events[at].config;
	c->fds = calloc(online, sizeof(*c->fds));
	c->last = calloc(online, sizeof(*c->last));
	if (!c->fds || !c->last)
		err = -ENOMEM;
	/* ends at the kernel's last processor, for which it says EINVAL */
	for (int cpu = 0; !err && c->processors < online; cpu++) {
		int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd >= 0)
			c->fds[c->processors++] = fd;
		else if (errno != ENODEV) /* which an offline one has */
			err = -errno;
	}
	/* some would not be all */
	if (err)
		event_counter_close(c);
	return err;
}

static bool read_since(struct event_counter *c, struct event_count *count, bool restart)
{
	__u64 enabled = 0, running = 0;
	bool known = c->processors;

	*count = (struct event_count){};
	for (int i = 0; i < c->processors; i++) {
		struct event_reading now, *last = &c->last[i];
		__u64 value, wanted, ran;

		if (read(c->fds[i], &now, sizeof(now)) != sizeof(now))
			return false;
		value = now.value - last->value;
		wanted = now.enabled - last->enabled;
		ran = now.running - last->running;
		if (restart)
			*last = now;
		enabled += wanted;
		running += ran;
		if (ran)
			count->value += ran == wanted ? value : (double)value * wanted / ran;
		else if (wanted)
			known = false;
	}
	count->share = enabled ? (double)running / enabled : 1;
	return known;
}

bool event_counter_read(struct event_counter *c, struct event_count *count)
{
	return read_since(c, count, true);
}

bool event_counter_look(struct event_counter *c, struct event_count *count)
{
	return read_since(c, count, false);
}

void event_counter_close(struct event_counter *c)
{
	for (int i = 0; i < c->processors; i++)
		close(c->fds[i]);
	free(c->fds);
	free(c->last);
	*c = (struct event_counter){};
}
