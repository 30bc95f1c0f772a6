// SPDX-License-Identifier: GPL-2.0-only
/* rxestat: where the time of each packet goes inside rdma_rxe. Manual: docs/man/rxestat.8.md */
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

/* the counters in the cells have 32 bits: fold them away long before they are full */
#define FOLD_MS 60000

struct run {
	struct config config;
	struct probes probes;
	struct session session;
	struct watch watch;
	struct outfile out;
	struct groups *groups; /* of this interval, or of the session */
};

static int collect(struct run *run)
{
	int err = collector_poll(&run->probes.collector, run->groups);

	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot read the BPF maps: %s", strerror(-err))
		   : 0;
}

static void print(struct run *run)
{
	run->session.end_ns = clock_now(CLOCK_MONOTONIC);
	probes_account(&run->probes, &run->session);
	(run->config.json ? print_json : print_table)(run->out.stream, &run->session, run->groups);
	fflush(run->out.stream);
}

/* the timer: an interval is over, or the cells are to be folded */
static int on_tick(void *context)
{
	struct run *run = context;
	int status = collect(run);

	if (status || !run->config.interval_ms)
		return status;
	run->session.interval++;
	print(run);
	run->session.start_ns = run->session.end_ns;
	run->session.start_wall_ns = clock_now(CLOCK_REALTIME);
	groups_clear(run->groups);
	/* a signal may have ended it in this very round */
	if (run->config.count && run->session.interval == run->config.count)
		run->watch.ended = true;
	return 0;
}

/* from attached programs to the last report */
static int measure(struct run *run)
{
	int status;

	run->session.start_wall_ns = clock_now(CLOCK_REALTIME);
	run->session.start_ns = clock_now(CLOCK_MONOTONIC);
	msg("ready");
	watch_go(&run->watch);
	status = watch_loop(&run->watch, on_tick, run);
	if (status)
		return status;
	/* an end between two intervals makes a last, short one */
	if (run->config.interval_ms && run->config.count &&
	    run->session.interval == run->config.count)
		return 0;
	if (run->config.interval_ms)
		run->session.interval++;
	probes_detach(&run->probes);
	status = collect(run);
	if (!status)
		print(run);
	return status;
}

static int begin(struct run *run)
{
	int status = watch_open(&run->watch, run->config.command);
	int err;

	if (status)
		return status;
	status = outfile_open(&run->out, run->config.output);
	status = status ?: probes_start(&run->probes, &run->config, &run->session);
	if (status)
		return status;
	run->groups = calloc(1, sizeof(*run->groups));
	err = run->groups ? watch_set_timer(&run->watch, run->config.interval_ms ?: FOLD_MS)
			  : -ENOMEM;
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot start: %s", strerror(-err)) : 0;
}

static void finish(struct run *run)
{
	watch_close(&run->watch);
	if (run->groups)
		groups_clear(run->groups);
	free(run->groups);
	probes_close(&run->probes);
	outfile_discard(&run->out);
}

int main(int argc, char **argv)
{
	static struct run run = {.probes.stats_fd = -1};
	int status;

	msg_program = "rxestat";
	status = config_parse(&run.config, argc, argv);
	if (status >= 0)
		return status;
	run.session.node = run.config.node;
	run.session.accelerator = accelerator();
	run.session.bpf_stats = run.config.bpf_stats;

	status = begin(&run);
	if (!status)
		status = measure(&run);
	if (!status)
		status = outfile_commit(&run.out) ?: run.watch.status;
	finish(&run);
	return status;
}
