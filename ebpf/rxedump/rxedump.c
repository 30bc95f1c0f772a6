// SPDX-License-Identifier: GPL-2.0-only
/* rxedump: each packet as rdma_rxe saw it, with its stages. Manual: docs/man/rxedump.8.md */
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capability.h"
#include "clock.h"
#include "control.h"
#include "dump_capture.h"
#include "dump_options.h"
#include "packet_hold.h"
#include "msg.h"
#include "outfile.h"
#include "dump_probes.h"
#include "watch.h"

/* how often the ring buffer is read; the programs wake us only when it fills up */
#define LOOK_MS 100
/* records at a time; signals are checked in between */
#define BATCH	  8192
#define SECOND_NS 1000000000ull

struct run {
	struct config config;
	struct session session;
	struct probes probes;
	struct capture capture;
	struct hold hold;
	struct watch watch;
	struct control control;
	char path[PATH_MAX]; /* of a window's file */
	bool recording;
	bool discard;	     /* records that the window before has left */
	int batch;	     /* records left of it */
	__u64 statistics_ns; /* when statistics were last written */
	__u64 reported_lost; /* and what they said */
	double cpu_at_start;
	bool stopped; /* enough packets, or nowhere to write them */
};

/* the wall clock may be set meanwhile: take the pair of readings that is closest together */
static __u64 wall_offset(void)
{
	__u64 best = ~0ull, offset = 0;

	for (int i = 0; i < 10; i++) {
		__u64 before = clock_now(CLOCK_MONOTONIC);
		__u64 wall = clock_now(CLOCK_REALTIME);
		__u64 after = clock_now(CLOCK_MONOTONIC);

		if (after - before < best) {
			best = after - before;
			offset = wall - (before + best / 2);
		}
	}
	return offset;
}

static bool on_packet(void *context, struct packet *packet)
{
	return capture_packet(context, packet);
}

static int on_record(void *context, void *record, size_t size)
{
	struct run *run = context;

	(void)size;
	if (run->discard)
		return 0;
	if (!hold_push(&run->hold, record)) {
		run->stopped = true;
		return -ECANCELED;
	}
	return --run->batch > 0 ? 0 : -EAGAIN;
}

/* read what is there, up to BATCH records; returns whether there may be more */
static bool take(struct run *run)
{
	run->batch = BATCH;
	ring_buffer__consume(run->probes.ring);
	return run->batch <= 0 && !run->stopped;
}

/* write losses while the file grows, in case we are killed */
static void account(struct run *run, __u64 now)
{
	struct losses *losses = &run->capture.losses;

	probes_losses(&run->probes, &run->session, &run->capture.interfaces, losses);
	losses->timed_out = run->hold.timed_out;
	losses->evicted = run->hold.evicted;
	run->statistics_ns = now;
	if (losses->ring + losses->nested != run->reported_lost) {
		run->reported_lost = losses->ring + losses->nested;
		capture_statistics(&run->capture, now);
	}
}

/* one round: write what is complete, and what has waited too long */
static bool look(struct run *run)
{
	bool more = take(run);
	__u64 now = clock_now(CLOCK_MONOTONIC);

	hold_drain(&run->hold, now, false);
	if (now - run->statistics_ns >= SECOND_NS)
		account(run, now);
	if (run->hold.enough || !output_flush(&run->capture.out))
		run->stopped = true;
	return more;
}

/* whether to go on reading records */
static bool takes(const struct run *run)
{
	return run->recording && !run->stopped;
}

/* until there is nothing to read any more, or, with --control, until that ends */
static void loop(struct run *run)
{
	bool control = run->config.session.control, more = false;

	while (!run->watch.ended && (takes(run) || control)) {
		const struct output *out = &run->capture.out;
		int ring = ring_buffer__epoll_fd(run->probes.ring);
		bool reads = takes(run);
		struct pollfd fds[] = {
			{.fd = run->watch.signals, .events = POLLIN},
			{.fd = reads ? ring : -1, .events = POLLIN},
			/* notices that the reader has closed the pipe even while nothing is written
			 */
			{.fd = reads && out->stream ? out->fd : -1},
			{.fd = control ? STDIN_FILENO : -1, .events = POLLIN},
		};

		if (poll(fds, 4, !reads ? -1 : more ? 0 : LOOK_MS) < 0 && errno != EINTR)
			return;
		if (fds[0].revents)
			watch_on_signal(&run->watch);
		if (fds[2].revents & (POLLERR | POLLHUP))
			run->capture.out.gone = run->stopped = true;
		if (fds[3].revents && !run->watch.ended)
			control_on_input(&run->control);
		more = takes(run) && look(run);
		/* the window's end may be far */
		if (control && run->stopped)
			session_detach(&run->session);
	}
}

/* read what the programs left in the buffer, and write what still waits */
static void drain(struct run *run)
{
	while (!run->stopped && take(run))
		hold_drain(&run->hold, 0, false);
	hold_drain(&run->hold, clock_now(CLOCK_MONOTONIC), true);
	account(run, clock_now(CLOCK_MONOTONIC));
}

/* CPU time of this process: the cost of writing */
static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void summarize(const struct run *run)
{
	const struct capture *c = &run->capture;
	const struct losses *l = &c->losses;
	__u64 kinds[DUMP_KINDS] = {};

	for (int i = 0; i < c->interfaces.count; i++) {
		for (int kind = 0; kind < DUMP_KINDS; kind++)
			kinds[kind] += c->interfaces.at[i].written[kind];
	}
	msg("%" PRIu64 " packets: %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64
	    " dropped before that",
	    (uint64_t)c->packets, (uint64_t)kinds[DUMP_TX], (uint64_t)kinds[DUMP_RX],
	    (uint64_t)kinds[DUMP_DROP]);
	msg("lost: %" PRIu64 " packets (%" PRIu64 " ring buffer full, %" PRIu64
	    " nested); without their last stages: %" PRIu64 " (%" PRIu64
	    " waited too long, %" PRIu64 " no room to wait)",
	    (uint64_t)(l->ring + l->nested), (uint64_t)l->ring, (uint64_t)l->nested,
	    (uint64_t)(l->timed_out + l->evicted), (uint64_t)l->timed_out, (uint64_t)l->evicted);
	msg("own cost: probes take tx %.0f + xmit %.0f, rx %.0f + done %.0f ns a packet, without "
	    "the calls; writing took %.3f s of CPU time%s",
	    c->cost.tx, c->cost.xmit, c->cost.rx, c->cost.done, cpu_seconds() - run->cpu_at_start,
	    strcmp(c->session->accelerator, "tcg") ? "" : " (emulated: not real time)");
}

static void tell_message(const struct follow *f)
{
	if (!f->qpn)
		return;
	if (f->found)
		msg("message of queue pair %u, %s: PSN %u to %u%s", f->qpn,
		    f->sent ? "sent" : "received", f->first,
		    f->is_read && f->read ? f->read_last : f->last,
		    f->complete && (!f->is_read || f->read) ? "" : ", its end was not seen");
	else
		msg("no such message of queue pair %u was seen", f->qpn);
}

static void print_program_statistics(const struct run *run)
{
	for (int i = 0; i < run->session.nprograms; i++) {
		const struct program_stats *p = &run->session.programs[i];

		if (p->runs)
			msg("%-24s %12" PRIu64 " runs, %8.0f ns each", p->name, (uint64_t)p->runs,
			    (double)p->run_ns / p->runs);
	}
}

static int finish_capture(struct run *run)
{
	const struct output *out = &run->capture.out;
	int err = capture_close(&run->capture, clock_now(CLOCK_MONOTONIC));

	if (out->gone)
		msg("the reader has closed the pipe, or takes nothing");
	if (err)
		return msg_not_written(run->config.output ?: "standard output", err);
	return 0;
}

static void forget(struct run *run)
{
	run->discard = true;
	ring_buffer__consume(run->probes.ring);
	run->discard = false;
	hold_reset(&run->hold);
	capture_reset(&run->capture);
	run->stopped = false;
	run->reported_lost = 0;
}

static int window_open(struct run *run)
{
	int status, err;

	forget(run);
	run->session.start_ns = run->statistics_ns = clock_now(CLOCK_MONOTONIC);
	run->capture.wall_ns = wall_offset();
	err = capture_open(&run->capture);
	if (err)
		return msg_not_opened(run->config.output ?: "standard output", err);
	status = probes_attach(&run->probes, &run->config, &run->session);
	if (status) {
		capture_close(&run->capture, run->session.start_ns);
		return status;
	}
	run->recording = true;
	run->cpu_at_start = cpu_seconds();
	return 0;
}

/* write what there is, and close the file */
static int window_end(struct run *run)
{
	int err;

	run->recording = false;
	err = probes_detach(&run->probes, &run->session);
	if (err)
		msg("cannot wait for the last packets: %s", strerror(-err));
	drain(run);
	return finish_capture(run);
}

static int window_close(struct run *run)
{
	int status = window_end(run);

	summarize(run);
	tell_message(&run->capture.follow);
	probes_say_lost(&run->probes);
	if (run->session.bpf_stats)
		print_program_statistics(run);
	return status;
}

/* of the capabilities, for the files to come */
static __u64 needs(const struct output *out)
{
	return out->path && out->file_limit ? outfile_name_needs(out->path) : 0;
}

static int record(struct run *run)
{
	int status = window_open(run);

	status = status ?: capability_give_up(needs(&run->capture.out));
	if (status)
		return status;
	msg("ready");
	watch_go(&run->watch);
	loop(run);
	return window_close(run) ?: run->watch.status;
}

/* lines on standard output, without a file */
static int on_start(void *context, const char *file)
{
	struct run *run = context;

	if (file && !strcmp(file, "-"))
		return msg_error(EXIT_USAGE, "lines go there", "name a file, or a named pipe",
				 "pcapng does not go to standard output");
	if (file)
		snprintf(run->path, sizeof(run->path), "%s", file);
	run->config.output = run->capture.out.path = file ? run->path : NULL;
	run->capture.out.fd = file ? -1 : STDOUT_FILENO;
	return window_open(run);
}

static int on_stop(void *context)
{
	return window_close(context);
}

static int on_report(void *context)
{
	struct run *run = context;

	while (takes(run) && look(run))
		;
	account(run, clock_now(CLOCK_MONOTONIC));
	summarize(run);
	return 0;
}

/* windows as standard input says */
static int obey(struct run *run)
{
	static const struct control_actions actions = {
		.start = on_start,
		.stop = on_stop,
		.report = on_report,
		.takes_file = true,
	};

	control_open(&run->control, &run->watch, &actions, run);
	msg("ready");
	loop(run);
	return run->recording ? window_end(run) : 0;
}

/* standard output is for the capture: the command's output goes to standard error */
static int take_stdout(void)
{
	int fd = dup(STDOUT_FILENO);

	if (fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -1;
	return fd;
}

static int begin(struct run *run)
{
	struct capture *c = &run->capture;
	int status;

	c->out.fd = -1;
	if (!run->config.output || !strcmp(run->config.output, "-")) {
		c->out.fd = run->config.output ? take_stdout() : STDOUT_FILENO;
		if (c->out.fd < 0)
			return msg_error(EXIT_RUN, NULL, NULL, "cannot use standard output: %s",
					 strerror(errno));
	} else {
		c->out.path = run->config.output;
	}
	c->out.file_limit = run->config.file_mb * 1000000ull;
	c->out.files = run->config.files;
	status = watch_open(&run->watch, run->config.session.command);
	if (status)
		return status;
	/* after the fork: the command keeps its own handling of a broken pipe */
	signal(SIGPIPE, SIG_IGN);
	c->out.interrupt = run->watch.signals;
	status = probes_load(&run->probes, &run->config, &run->session, &c->cost, on_record, run);
	if (status)
		return status;
	run->hold.table = probes_late_table(&run->probes);
	run->hold.stock = run->session.driver.kind == DRIVER_STOCK;
	run->hold.patience_ns = run->config.hold_ms * 1000000ull;
	run->hold.emit = on_packet;
	run->hold.context = c;
	return 0;
}

int main(int argc, char **argv)
{
	static struct run run;
	int status;

	msg_program = "rxedump";
	status = config_parse(&run.config, argc, argv);
	if (status >= 0)
		return status;
	run.capture.config = &run.config;
	run.capture.session = &run.session;
	run.capture.interfaces.node = run.config.session.node;
	run.probes.quiesce.inner = run.probes.quiesce.outer = -1;
	session_init(&run.session, &run.config.session);

	status = begin(&run);
	if (!status)
		status = run.config.session.control ? obey(&run) : record(&run);
	watch_close(&run.watch);
	session_detach(&run.session);
	probes_close(&run.probes);
	hold_free(&run.hold);
	capture_free(&run.capture);
	return status;
}
