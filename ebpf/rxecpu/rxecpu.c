// SPDX-License-Identifier: GPL-2.0-only
/* rxecpu: what the CPUs do, and for whom. Manual: docs/man/rxecpu.8.md */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "accel.h"
#include "clock.h"
#include "config.h"
#include "msg.h"
#include "outfile.h"
#include "probes.h"
#include "report.h"
#include "watch.h"

struct run {
	struct config config;
	struct probes probes;
	struct session session;
	struct watch watch;
	struct outfile out;
	__u64 before[ACCOUNTS]; /* sums at the end of the interval before */
	__u64 own_ns;		/* CPU time of this process until it was ready */
};

/* every account up to now; `last`: and not beyond */
static int take(struct run *run, bool last)
{
	int err = sampler_take(&run->probes.sampler, last);

	if (err)
		return msg_error(EXIT_RUN, err == -ENXIO ? "a CPU was taken offline" : NULL, NULL,
				 "cannot read the accounts: %s", strerror(-err));
	sampler_window(&run->probes.sampler, &run->session.start_ns, &run->session.end_ns);
	sampler_times(&run->probes.sampler, run->session.cpus);
	return 0;
}

/* the last sample ends an interval */
static int add_interval(struct run *run)
{
	struct session *s = &run->session;
	struct interval *longer, *interval;
	__u64 now[ACCOUNTS];

	longer = realloc(s->series, (s->intervals + 1) * sizeof(*s->series));
	if (!longer)
		return msg_error(EXIT_RUN, NULL, "take longer intervals", "out of memory");
	s->series = longer;
	interval = &s->series[s->intervals++];
	interval->start_ns = s->intervals > 1 ? interval[-1].end_ns : s->start_ns;
	interval->end_ns = s->end_ns;
	times_sum(s, now);
	for (int a = 0; a < ACCOUNTS; a++)
		interval->ns[a] = now[a] - run->before[a];
	memcpy(run->before, now, sizeof(now));
	if (!run->config.json) {
		print_interval(run->out.stream, s, interval, s->intervals);
		fflush(run->out.stream);
	}
	return 0;
}

static int on_tick(void *context)
{
	struct run *run = context;
	int status;

	/* the last one's sample is taken when all is over */
	if (run->config.count && run->session.intervals + 1 == (int)run->config.count) {
		run->watch.ended = true;
		return 0;
	}
	status = take(run, false);
	return status ?: add_interval(run);
}

/* from accounts that have begun to the report */
static int measure(struct run *run)
{
	struct session *s = &run->session;
	int status, err = watch_set_timer(&run->watch, run->config.interval_ms);

	if (err)
		return msg_error(EXIT_RUN, NULL, NULL, "cannot start: %s", strerror(-err));
	s->start_wall_ns = clock_now(CLOCK_REALTIME);
	run->own_ns = clock_now(CLOCK_PROCESS_CPUTIME_ID);
	msg("ready");
	watch_go(&run->watch);
	status = watch_loop(&run->watch, on_tick, run);
	/* frozen before anything else: ending is not what was to be measured */
	status = status ?: take(run, true);
	if (status)
		return status;
	s->self_ns = clock_now(CLOCK_PROCESS_CPUTIME_ID) - run->own_ns;
	probes_detach(&run->probes);
	if (run->config.interval_ms)
		status = add_interval(run);
	if (status)
		return status;
	probes_account(&run->probes, s);
	(run->config.json ? print_json : print_table)(run->out.stream, s);
	return 0;
}

static int begin(struct run *run)
{
	int status = watch_open(&run->watch, run->config.command);

	status = status ?: outfile_open(&run->out, run->config.output);
	if (!status)
		status = probes_start(&run->probes, &run->config, &run->session,
				      run->watch.command.pid);
	return status;
}

static void finish(struct run *run)
{
	watch_close(&run->watch);
	probes_close(&run->probes);
	free(run->session.cpus);
	free(run->session.series);
	outfile_discard(&run->out);
}

int main(int argc, char **argv)
{
	static struct run run = {.probes.stats_fd = -1};
	struct config *config = &run.config;
	int status;

	msg_program = "rxecpu";
	status = config_parse(config, argc, argv);
	if (status >= 0)
		return status;
	run.session.node = config->node;
	run.session.accelerator = accelerator();
	run.session.bpf_stats = config->bpf_stats;
	run.session.per_cpu = config->per_cpu;
	run.session.has_benchmark = config->npids || config->ncomms || config->cgroup ||
				    config->command;

	status = begin(&run);
	if (!status)
		status = measure(&run);
	if (!status)
		status = outfile_commit(&run.out) ?: run.watch.status;
	finish(&run);
	return status;
}
