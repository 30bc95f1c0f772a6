// SPDX-License-Identifier: GPL-2.0-only
/* rxestat: where the time of each packet goes inside rdma_rxe. Manual: docs/man/rxestat.8.md */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "capability.h"
#include "clock.h"
#include "control.h"
#include "event_counter.h"
#include "exporter.h"
#include "stat_options.h"
#include "msg.h"
#include "outfile.h"
#include "stat_probes.h"
#include "stat_report.h"
#include "watch.h"

/* the cells have 32-bit counters: add them up long before they overflow */
#define FOLD_MS 60000
/* the maps are read at most once in this time, however many scrape */
#define SCRAPE_NS 100000000ull

struct run {
	struct config config;
	struct probes probes;
	struct report report;
	struct event_counter counter;
	struct watch watch;
	struct control control;
	struct outfile out;
	struct exporter exporter;
	__u64 collected_ns;    /* for a scrape */
	struct groups *groups; /* of this interval, or of the session */
	bool open;	       /* the programs count */
	unsigned int folds;    /* ticks of an interval; 0: there are no intervals */
	unsigned int folded;   /* of this one */
};

static int cannot_read(int err)
{
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot read the BPF maps: %s", strerror(-err))
		   : 0;
}

static int cannot_write(void)
{
	return msg_not_written("the report", -errno);
}

static int collect(struct run *run)
{
	return cannot_read(probes_collect(&run->probes, &run->report, run->groups));
}

/* before the maps are read, which the kernel does, too */
static void count_events(struct run *run)
{
	struct report *r = &run->report;

	r->event = event_counter_read(&run->counter, &r->events) ? run->config.event : NULL;
}

static int print(struct run *run)
{
	int status;

	run->report.session.end_ns = clock_now(CLOCK_MONOTONIC);
	if (run->report.sample.one_of > 1)
		run->report.totals = sample_totals(&run->report.sample);
	status = probes_check_clock(&run->probes);
	status = status ?: cannot_read(probes_account(&run->probes, &run->report));
	if (status)
		return status;
	(run->config.report.json ? print_json : print_table)(run->out.stream, &run->report,
							     run->groups);
	return fflush(run->out.stream) && run->config.session.control ? cannot_write() : 0;
}

/* a scraper asks; who asks often gets the same again */
static int on_scrape(void *context, FILE *out, bool openmetrics)
{
	struct run *run = context;
	__u64 now = clock_now(CLOCK_MONOTONIC);
	int status = probes_check_clock(&run->probes);

	if (!status && now - run->collected_ns >= SCRAPE_NS) {
		status = collect(run);
		run->collected_ns = now;
		if (!status)
			status = cannot_read(probes_account(&run->probes, &run->report));
	}
	if (!status)
		print_metrics(out, &run->report, run->groups, openmetrics);
	return status;
}

static int serve(void *context)
{
	return exporter_serve(context);
}

/* the timer: an interval has ended, or the cells must be added up */
static int on_tick(void *context)
{
	struct run *run = context;
	int status;

	if (!run->open)
		return 0;
	if (run->folds && run->folded + 1 == run->folds)
		count_events(run);
	status = collect(run);
	if (status || !run->folds || ++run->folded < run->folds)
		return status;
	run->folded = 0;
	run->report.interval++;
	status = print(run);
	if (status)
		return status;
	run->report.session.start_ns = run->report.session.end_ns;
	run->report.session.start_wall_ns = clock_now(CLOCK_REALTIME);
	sample_restart(&run->report.sample);
	probes_restart(&run->probes);
	groups_clear(run->groups);
	work_clear(&run->report.work);
	/* a signal may have ended it in the same round */
	if (run->config.report.count && run->report.interval == run->config.report.count)
		run->watch.ended = true;
	return 0;
}

static int window_open(struct run *run)
{
	int status = probes_begin(&run->probes, &run->config, &run->report);

	if (status)
		return status;
	run->open = true;
	groups_clear(run->groups);
	run->report.session.start_wall_ns = clock_now(CLOCK_REALTIME);
	run->report.session.start_ns = clock_now(CLOCK_MONOTONIC);
	sample_restart(&run->report.sample);
	count_events(run);
	return 0;
}

/* detached, then reported */
static int window_close(struct run *run)
{
	int status;

	run->open = false;
	count_events(run);
	probes_end(&run->probes, &run->report);
	status = collect(run);
	status = status ?: print(run);
	probes_say_lost(&run->probes, &run->report);
	return status;
}

/* from attached programs to the last report */
static int measure(struct run *run)
{
	int status = window_open(run);

	status = status ?: capability_give_up(outfile_needs(&run->out));
	if (status)
		return status;
	msg("ready");
	watch_go(&run->watch);
	status = watch_loop(&run->watch, on_tick, run);
	if (status)
		return status;
	/* an end within an interval makes it a last, short one */
	if (run->config.report.interval_ms && run->config.report.count &&
	    run->report.interval == run->config.report.count)
		return 0;
	if (run->config.report.interval_ms)
		run->report.interval++;
	return window_close(run);
}

static int on_start(void *context, const char *file)
{
	(void)file;
	return window_open(context);
}

static int on_stop(void *context)
{
	return window_close(context);
}

static int on_report(void *context)
{
	struct run *run = context;
	struct report *r = &run->report;
	int status;

	r->event = event_counter_look(&run->counter, &r->events) ? run->config.event : NULL;
	status = collect(run);
	return status ?: print(run);
}

/* windows as standard input says */
static int obey(struct run *run)
{
	static const struct control_actions actions = {
		.start = on_start,
		.stop = on_stop,
		.report = on_report,
	};

	control_open(&run->control, &run->watch, &actions, run);
	msg("ready");
	return watch_loop(&run->watch, on_tick, run);
}

static int begin(struct run *run)
{
	int status = watch_open(&run->watch, run->config.session.command);
	__u64 tick_ns = FOLD_MS * 1000000ull;
	int err;

	if (status)
		return status;
	run->report.work.wanted = run->config.work_requests;
	run->report.work.one_of = run->config.one_of;
	status = probes_load(&run->probes, &run->config, &run->report);
	if (status)
		return status;
	/* without a counter, or the right to it, the report has none */
	event_counter_open(&run->counter, run->config.event, true);
	run->groups = calloc(1, sizeof(*run->groups));
	if (run->config.report.interval_ms) {
		run->folds = (run->config.report.interval_ms + FOLD_MS - 1) / FOLD_MS;
		tick_ns = run->config.report.interval_ms * 1000000ull / run->folds;
	}
	run->report.histograms = run->config.histograms;
	run->report.filter = &run->config.filter;
	if (run->config.openmetrics) {
		/* after the fork: the command keeps its own handling of a broken pipe */
		signal(SIGPIPE, SIG_IGN);
		status = exporter_open(&run->exporter, run->config.openmetrics, on_scrape, run);
		if (status)
			return status;
		watch_serve(&run->watch, run->exporter.fd, serve, &run->exporter);
	}
	err = run->groups ? watch_set_timer(&run->watch, tick_ns) : -ENOMEM;
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot start: %s", strerror(-err)) : 0;
}

static void finish(struct run *run)
{
	exporter_close(&run->exporter);
	event_counter_close(&run->counter);
	watch_close(&run->watch);
	if (run->groups)
		groups_clear(run->groups);
	free(run->groups);
	work_clear(&run->report.work);
	probes_end(&run->probes, &run->report);
	probes_close(&run->probes, &run->report);
	outfile_discard(&run->out);
}

int main(int argc, char **argv)
{
	static struct run run;
	int status;

	msg_program = "rxestat";
	status = config_parse(&run.config, argc, argv);
	if (status >= 0)
		return status;
	session_init(&run.report.session, &run.config.session);

	/* before signals are blocked: opening a named pipe waits for its reader */
	status = outfile_open(&run.out, run.config.report.output,
			      run.config.report.interval_ms || run.config.session.control);
	if (status)
		return status;
	status = begin(&run);
	if (!status)
		status = run.config.session.control ? obey(&run) : measure(&run);
	if (!status)
		status = outfile_commit(&run.out) ?: run.watch.status;
	finish(&run);
	return status;
}
