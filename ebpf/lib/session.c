// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session.h"

#include <string.h>
#include <unistd.h>

#include "accel.h"
#include "msg.h"

void session_init(struct session *s, const struct session_options *options)
{
	memset(s, 0, sizeof(*s));
	s->node = options->node;
	s->accelerator = accelerator();
	s->bpf_stats = options->bpf_stats;
	s->stats_fd = -1;
}

int session_inspect(struct session *s, bool needs_driver)
{
	int status = load_begin(needs_driver);

	if (!status)
		driver_inspect(&s->driver);
	return status;
}

int session_attach(struct session *s, const struct bpf_object *object,
		   bool (*wanted)(const struct bpf_program *program, const void *context),
		   const void *context)
{
	int status;

	if (!driver_is_same(&s->driver))
		return msg_error(EXIT_RUN, "it was loaded again, or unloaded", "start again",
				 "rdma_rxe is not the module that the programs are for");
	status = s->bpf_stats && s->stats_fd < 0 ? load_enable_stats(&s->stats_fd) : 0;
	load_program_stats(object, s->before, SESSION_PROGRAMS);
	if (status || s->attached.n)
		return status;
	return attach_backwards(&s->attached, object, wanted, context);
}

void session_detach(struct session *s)
{
	attach_undo(&s->attached);
	if (s->stats_fd >= 0)
		close(s->stats_fd);
	s->stats_fd = -1;
}

void session_account(struct session *s, const struct bpf_object *object)
{
	s->nprograms = load_program_stats(object, s->programs, SESSION_PROGRAMS);
	for (int i = 0; i < s->nprograms; i++) {
		s->programs[i].runs -= s->before[i].runs;
		s->programs[i].run_ns -= s->before[i].run_ns;
		s->programs[i].missed -= s->before[i].missed;
	}
}

/*
 * What interrupts the task of a queue pair is an arrival, whose drop rxe_drop counts (drop.bpf.h).
 * Tasklets run within interrupts, too.
 */
static bool misses_nothing(const struct session *s, const char *program)
{
	return s->driver.has_work && !strcmp(program, "rxe_drop_late");
}

__u64 session_missed(const struct session *s, bool (*counts)(const char *name))
{
	__u64 missed = 0;

	for (int i = 0; i < s->nprograms; i++) {
		if (misses_nothing(s, s->programs[i].name))
			continue;
		if (!counts || counts(s->programs[i].name))
			missed += s->programs[i].missed;
	}
	return missed;
}
