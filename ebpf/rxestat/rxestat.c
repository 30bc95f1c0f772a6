// SPDX-License-Identifier: GPL-2.0-only
/* rxestat: where the time of each packet goes inside rdma_rxe. Manual: docs/man/rxestat.8.md */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "accel.h"
#include "config.h"
#include "msg.h"
#include "outfile.h"
#include "probes.h"
#include "report.h"
#include "watch.h"

/* the counters in the cells have 32 bits: fold them away long before they are full */
#define FOLD_SECONDS 60

struct run {
	struct config config;
	struct probes probes;
	struct session session;
	struct watch watch;
	struct outfile out;
	struct groups *groups; /* of this interval, or of the session */
	int timer;
};

static __u64 clock_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

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
static int on_timer(struct run *run)
{
	__u64 expirations;
	int status;

	if (read(run->timer, &expirations, sizeof(expirations)) != sizeof(expirations))
		return 0;
	status = collect(run);
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

static int open_timer(struct run *run)
{
	unsigned int ms = run->config.interval_ms ?: FOLD_SECONDS * 1000;
	struct itimerspec spec = {
		.it_interval = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l},
	};

	spec.it_value = spec.it_interval;
	run->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return run->timer < 0 || timerfd_settime(run->timer, 0, &spec, NULL) ? -errno : 0;
}

static int loop(struct run *run)
{
	struct pollfd fds[] = {
		{.fd = run->watch.signals, .events = POLLIN},
		{.fd = run->timer, .events = POLLIN},
	};
	int status = 0;

	while (!run->watch.ended && !status) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return msg_error(EXIT_RUN, NULL, NULL, "cannot wait for signals: %s",
					 strerror(errno));
		if (fds[0].revents)
			watch_on_signal(&run->watch);
		if (fds[1].revents)
			status = on_timer(run);
	}
	return status;
}

/* from attached programs to the last report */
static int measure(struct run *run)
{
	int status;

	run->session.start_wall_ns = clock_now(CLOCK_REALTIME);
	run->session.start_ns = clock_now(CLOCK_MONOTONIC);
	msg("ready");
	watch_go(&run->watch);
	status = loop(run);
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
	err = outfile_open(&run->out, run->config.output);
	if (err)
		return msg_error(EXIT_USAGE, "its folder is missing, or not writable", NULL,
				 "cannot write %s: %s", run->config.output, strerror(-err));
	status = probes_start(&run->probes, &run->config, &run->session);
	if (status)
		return status;
	run->groups = calloc(1, sizeof(*run->groups));
	err = run->groups ? open_timer(run) : -ENOMEM;
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
	int status, err;

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
	if (!status) {
		err = outfile_commit(&run.out);
		status = err ? msg_error(EXIT_RUN, "the disk is full, or the reader has gone", NULL,
					 "cannot write the result: %s", strerror(-err))
			     : run.watch.status;
	}
	finish(&run);
	return status;
}
