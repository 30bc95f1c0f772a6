// SPDX-License-Identifier: GPL-2.0-only
/* rxecpu: what the CPUs do, and for whom. Manual: docs/man/rxecpu.8.md */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capability.h"
#include "clock.h"
#include "control.h"
#include "cpu_options.h"
#include "msg.h"
#include "outfile.h"
#include "cpu_probes.h"
#include "cpu_report.h"
#include "watch.h"

/* how often, at least, the code of new processes is looked up, which may end before us */
#define LOOK_MS 200u

struct run {
	struct config config;
	struct probes probes;
	struct report report;
	struct watch watch;
	struct control control;
	bool open; /* the accounts run */
	struct outfile out;
	struct outfile stacks;
	char path[PATH_MAX];	/* of a window's stacks */
	unsigned int ticks;	/* in an interval */
	unsigned int ticked;	/* since the last one ended */
	__u64 before[ACCOUNTS]; /* sums at the end of the interval before */
	__u64 own_ns;		/* CPU time of this process until it was ready */
};

/* bring every account up to now; `last`: and freeze it */
static int take(struct run *run, bool last)
{
	int err = sampler_take(&run->probes.sampler, last);

	if (err)
		return msg_error(EXIT_RUN, err == -ENXIO ? "a CPU was taken offline" : NULL, NULL,
				 "cannot read the accounts: %s", strerror(-err));
	sampler_window(&run->probes.sampler, &run->report.session.start_ns,
		       &run->report.session.end_ns);
	sampler_times(&run->probes.sampler, run->report.cpus);
	return 0;
}

/* the last sample ends an interval */
static int add_interval(struct run *run)
{
	struct report *r = &run->report;
	struct interval *longer, *interval;
	__u64 now[ACCOUNTS];

	longer = realloc(r->series, (r->intervals + 1) * sizeof(*r->series));
	if (!longer)
		return msg_error(EXIT_RUN, NULL, "take longer intervals", "out of memory");
	r->series = longer;
	interval = &r->series[r->intervals++];
	interval->start_ns = r->intervals > 1 ? interval[-1].end_ns : r->session.start_ns;
	interval->end_ns = r->session.end_ns;
	times_sum(r, now);
	for (int a = 0; a < ACCOUNTS; a++)
		interval->ns[a] = now[a] - run->before[a];
	memcpy(run->before, now, sizeof(now));
	if (!run->config.report.json) {
		print_interval(run->out.stream, r, interval, r->intervals);
		fflush(run->out.stream);
	}
	return 0;
}

static int on_tick(void *context)
{
	struct run *run = context;
	int status;

	if (!run->open)
		return 0;
	if (run->config.stacks)
		stacks_look(&run->probes.stacks);
	if (!run->config.report.interval_ms || ++run->ticked < run->ticks)
		return 0;
	run->ticked = 0;
	/* the end of the session takes the last sample */
	if (run->config.report.count &&
	    run->report.intervals + 1 == (int)run->config.report.count) {
		run->watch.ended = true;
		return 0;
	}
	status = take(run, false);
	return status ?: add_interval(run);
}

static int set_timer(struct run *run)
{
	unsigned int interval_ms = run->config.report.interval_ms;
	unsigned long long ns = (interval_ms ?: run->config.stacks ? LOOK_MS : 0) * 1000000ull;

	run->ticks = run->config.stacks && interval_ms ? (interval_ms + LOOK_MS - 1) / LOOK_MS : 1;
	return watch_set_timer(&run->watch, ns / run->ticks);
}

static int window_open(struct run *run)
{
	struct report *r = &run->report;
	int status, err;

	status = probes_begin(&run->probes, &run->config, r, run->watch.command.pid);
	if (status)
		return status;
	err = set_timer(run);
	if (err) {
		probes_end(&run->probes, r);
		return msg_error(EXIT_RUN, NULL, NULL, "cannot start: %s", strerror(-err));
	}
	run->open = true;
	run->ticked = 0;
	r->intervals = 0;
	memset(run->before, 0, sizeof(run->before));
	r->session.start_wall_ns = clock_now(CLOCK_REALTIME);
	run->own_ns = clock_now(CLOCK_PROCESS_CPUTIME_ID);
	return 0;
}

static int print(struct run *run)
{
	struct report *r = &run->report;

	probes_account(&run->probes, r);
	(run->config.report.json ? print_json : print_table)(run->out.stream, r);
	if (fflush(run->out.stream) && run->config.session.control)
		return msg_not_written("the report", -errno);
	return 0;
}

static int window_close(struct run *run, bool hold)
{
	struct report *r = &run->report;
	/* freeze before anything else: ending is not part of what is measured */
	int status = take(run, true);

	run->open = false;
	r->self_ns = clock_now(CLOCK_PROCESS_CPUTIME_ID) - run->own_ns;
	if (!hold || status)
		probes_end(&run->probes, r);
	if (!status && run->config.report.interval_ms)
		status = add_interval(run);
	status = status ?: print(run);
	if (!status && run->config.stacks)
		stacks_write(&run->probes.stacks, run->stacks.stream, r);
	return status;
}

/* of the capabilities, for the names of code at the end and the files that it is in */
static __u64 needs(const struct run *run)
{
	__u64 set = outfile_needs(&run->out);

	if (run->config.stacks)
		set |= outfile_needs(&run->stacks) | CAPABILITY(CAP_SYSLOG) |
		       CAPABILITY(CAP_SYS_PTRACE);
	return set;
}

/* from accounts that have begun to the report */
static int measure(struct run *run)
{
	int status = window_open(run);

	status = status ?: capability_give_up(needs(run));
	if (status)
		return status;
	msg("ready");
	watch_go(&run->watch);
	status = watch_loop(&run->watch, on_tick, run);
	return status ?: window_close(run, false);
}

static int on_release(void *context)
{
	struct run *run = context;

	probes_end(&run->probes, &run->report);
	return 0;
}

static int on_start(void *context, const char *file)
{
	struct run *run = context;
	int status = 0;

	if (file && !strcmp(file, "-"))
		return msg_error(EXIT_USAGE, "reports go there", "name a file",
				 "stacks do not go to standard output");
	snprintf(run->path, sizeof(run->path), "%s", file ?: "");
	run->config.stacks = file ? run->path : NULL;
	if (file) {
		on_release(run); /* it was held without the programs for stacks */
		status = outfile_open(&run->stacks, run->path, false);
	}
	status = status ?: window_open(run);
	if (status)
		outfile_discard(&run->stacks);
	return status;
}

static int on_report(void *context)
{
	struct run *run = context;
	int status = take(run, false);

	run->report.self_ns = clock_now(CLOCK_PROCESS_CPUTIME_ID) - run->own_ns;
	return status ?: print(run);
}

static int end(struct run *run, bool hold)
{
	int status = window_close(run, hold);

	watch_set_timer(&run->watch, 0);
	if (!status && run->config.stacks)
		return outfile_commit(&run->stacks);
	outfile_discard(&run->stacks);
	return status;
}

static int on_stop(void *context)
{
	return end(context, false);
}

/*
 * The kernel waits for all tasks after it has detached from a function, and we attach to three:
 * 0.4 s. Frozen accounts count nothing meanwhile.
 */
static int on_hold(void *context)
{
	struct run *run = context;

	return end(run, !run->config.stacks);
}

/* windows as standard input says */
static int obey(struct run *run)
{
	static const struct control_actions actions = {
		.start = on_start,
		.stop = on_stop,
		.hold = on_hold,
		.release = on_release,
		.report = on_report,
		.takes_file = true,
	};

	control_open(&run->control, &run->watch, &actions, run);
	msg("ready");
	return watch_loop(&run->watch, on_tick, run);
}

static int begin(struct run *run)
{
	int status = watch_open(&run->watch, run->config.session.command);

	if (!status)
		status = probes_load(&run->probes, &run->config, &run->report);
	return status;
}

static void finish(struct run *run)
{
	watch_close(&run->watch);
	probes_end(&run->probes, &run->report);
	probes_close(&run->probes);
	free(run->report.cpus);
	free(run->report.series);
	outfile_discard(&run->out);
	outfile_discard(&run->stacks);
}

int main(int argc, char **argv)
{
	static struct run run;
	struct config *config = &run.config;
	int status;

	msg_program = "rxecpu";
	status = config_parse(config, argc, argv);
	if (status >= 0)
		return status;
	session_init(&run.report.session, &config->session);
	run.report.per_cpu = config->per_cpu;
	run.report.has_benchmark = config->npids || config->ncomms || config->cgroup ||
				   config->session.command;

	/* before signals are blocked: opening a named pipe waits for its reader */
	status = outfile_open(&run.out, config->report.output,
			      config->report.interval_ms || config->session.control);
	if (!status && config->stacks)
		status = outfile_open(&run.stacks, config->stacks, false);
	if (!status)
		status = begin(&run);
	if (!status)
		status = config->session.control ? obey(&run) : measure(&run);
	if (!status)
		status = outfile_commit(&run.out);
	if (!status && config->stacks && !config->session.control)
		status = outfile_commit(&run.stacks);
	if (!status)
		status = run.watch.status;
	finish(&run);
	return status;
}
