// SPDX-License-Identifier: GPL-2.0-only
/* rxetop: the queue pairs of rdma_rxe, the busiest first. Manual: docs/man/rxetop.8.md */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capability.h"
#include "clock.h"
#include "control.h"
#include "msg.h"
#include "terminal.h"
#include "top_probes.h"
#include "top_screen.h"
#include "watch.h"

#define INTERVAL_MIN 100
#define INTERVAL_MAX 3600000

struct run {
	struct config config;
	struct qp_choice choice;
	struct probes probes;
	struct report report;
	struct watch watch;
	struct control control;
	struct frame frame;
	/* a filter that is being typed */
	char typed[sizeof(((struct selection *)0)->filter)];
};

static int look(struct run *run)
{
	int err =
		qp_list_look(&run->report.list, run->probes.map, &run->choice, run->config.one_of);
	int status = probes_check_clock(&run->probes);

	run->report.session.end_ns = clock_now(CLOCK_MONOTONIC);
	probes_account(&run->probes, &run->report);
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot read the queue pairs: %s",
			       strerror(-err))
		   : status;
}

static int print(struct run *run)
{
	if (run->config.json) {
		print_json(stdout, &run->report, &run->config);
	} else {
		print_screen(stdout, &run->report, &run->config, &run->frame);
		putchar('\n');
	}
	return fflush(stdout) ? msg_error(EXIT_RUN, "what reads the output has ended", NULL,
					  "cannot write: %s", strerror(errno))
			      : 0;
}

static void draw(struct run *run)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return;
	terminal_size(&run->frame.width, &run->frame.height);
	print_screen(out, &run->report, &run->config, &run->frame);
	if (!fclose(out))
		terminal_draw(text, length);
	free(text);
}

static int on_tick(void *context)
{
	struct run *run = context;
	int status;

	if (run->frame.paused)
		return 0;
	status = look(run);
	run->report.number++;
	if (status)
		return status;
	if (run->config.batch)
		status = print(run);
	else
		draw(run);
	if (run->config.iterations && run->report.number >= run->config.iterations)
		run->watch.ended = true;
	return status;
}

static int set_interval(struct run *run, __u32 ms)
{
	run->config.interval_ms = ms;
	return watch_set_timer(&run->watch, ms * 1000000ull);
}

/* typing a filter takes all keys until return or escape */
static void type_key(struct run *run, int key)
{
	size_t length = strlen(run->typed);

	if (key == '\r' || key == '\n') {
		memcpy(run->config.selection.filter, run->typed, sizeof(run->typed));
		run->frame.prompt = NULL;
	} else if (key == KEY_ESCAPE) {
		run->frame.prompt = NULL;
	} else if ((key == 127 || key == '\b') && length) {
		run->typed[length - 1] = '\0';
	} else if (key < 256 && isprint(key) && length + 1 < sizeof(run->typed)) {
		run->typed[length] = key;
		run->typed[length + 1] = '\0';
	}
}

static void choose_stage(struct run *run, int step)
{
	int n = stage_choices(), at = 0;
	struct stage_choice *stage = &run->config.stage;

	while (stage_choice_at(at).dir != stage->dir || stage_choice_at(at).number != stage->number)
		at++;
	*stage = stage_choice_at((at + step + n) % n);
	probes_choose_stage(&run->probes, *stage);
	qp_list_forget_stage(&run->report.list, run->probes.map);
}

static void scroll(struct run *run, int rows)
{
	size_t *top = &run->frame.top;

	*top = rows < 0 && *top < (size_t)-rows ? 0 : *top + rows;
}

static bool sort_key(struct run *run, int key)
{
	for (int i = 0; i < SORTS; i++) {
		if (key == sort_key_letter(i)) {
			run->config.selection.sort = i;
			return true;
		}
	}
	return false;
}

static void on_command(struct run *run, int key)
{
	struct selection *selection = &run->config.selection;
	int page = run->frame.height / 2;

	switch (key) {
	case 'q':
		run->watch.ended = true;
		return;
	case 'p':
	case ' ':
		run->frame.paused = !run->frame.paused;
		return;
	case 'v':
	case '\t':
		run->config.view = (run->config.view + 1) % VIEWS;
		return;
	case 'r':
		selection->reverse = !selection->reverse;
		return;
	case 'g':
		selection->group = (selection->group + 1) % GROUPS;
		return;
	case 'i':
		selection->idle = !selection->idle;
		return;
	case 't':
		return choose_stage(run, 1);
	case 'T':
		return choose_stage(run, -1);
	case 'f':
	case '/':
		memcpy(run->typed, selection->filter, sizeof(run->typed));
		run->frame.prompt = run->typed;
		return;
	case '+':
		if (run->config.interval_ms <= INTERVAL_MAX / 2)
			set_interval(run, run->config.interval_ms * 2);
		return;
	case '-':
		if (run->config.interval_ms >= INTERVAL_MIN * 2)
			set_interval(run, run->config.interval_ms / 2);
		return;
	case 'h':
	case '?':
		run->frame.help = !run->frame.help;
		return;
	case KEY_ESCAPE:
		run->frame.help = false;
		return;
	case KEY_UP:
		return scroll(run, -1);
	case KEY_DOWN:
		return scroll(run, 1);
	case KEY_PAGE_UP:
		return scroll(run, -page);
	case KEY_PAGE_DOWN:
		return scroll(run, page);
	case KEY_HOME:
		run->frame.top = 0;
		return;
	case KEY_END:
		run->frame.top = run->report.list.n;
		return;
	default:
		sort_key(run, key);
	}
}

static void on_keys(struct run *run)
{
	int key = terminal_key();

	for (; key > 0 && !run->watch.ended; key = terminal_key()) {
		if (run->frame.prompt)
			type_key(run, key);
		else
			on_command(run, key);
	}
	if (key < 0)
		run->watch.ended = true;
	else if (!run->watch.ended)
		draw(run);
}

/* watch_loop() with a keyboard */
static int screen_loop(struct run *run)
{
	struct watch *w = &run->watch;
	uint64_t expirations;
	int status = 0;

	while (!w->ended && !status) {
		struct pollfd fds[] = {
			{.fd = w->signals, .events = POLLIN},
			{.fd = w->timer, .events = POLLIN},
			{.fd = STDIN_FILENO, .events = POLLIN},
		};

		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			return msg_error(EXIT_RUN, NULL, NULL, "cannot wait for keys: %s",
					 strerror(errno));
		if (terminal_changed())
			draw(run);
		if (fds[0].revents)
			watch_on_signal(w);
		if (fds[2].revents && !w->ended)
			on_keys(run);
		if (fds[1].revents && !w->ended &&
		    read(w->timer, &expirations, sizeof(expirations)) == sizeof(expirations))
			status = on_tick(run);
	}
	return status;
}

static int on_screen(struct run *run)
{
	int err = terminal_open(), status;

	if (err)
		return msg_error(EXIT_RUN, NULL, NULL, "cannot use the terminal: %s",
				 strerror(-err));
	draw(run);
	status = screen_loop(run);
	terminal_close();
	return status;
}

static int begin(struct run *run)
{
	int status = watch_open(&run->watch, run->config.session.command);

	run->choice.device = run->config.device;
	/* on the screen, a key can group them */
	run->choice.named = !run->config.batch || run->config.selection.group != GROUP_NONE;
	status = status ?: place_options_find(&run->config.places, &run->choice.places);
	return status ?: probes_load(&run->probes, &run->config, &run->report);
}

static int window_open(struct run *run)
{
	int status;

	qp_list_free(&run->report.list);
	run->report.number = 0;
	status = probes_begin(&run->probes, &run->config, &run->report);
	if (status)
		return status;
	run->report.session.start_wall_ns = clock_now(CLOCK_REALTIME);
	run->report.session.start_ns = clock_now(CLOCK_MONOTONIC);
	/* the first interval begins here */
	return look(run);
}

static int start(struct run *run)
{
	int status = window_open(run), err;

	if (status)
		return status;
	err = watch_set_timer(&run->watch, run->config.interval_ms * 1000000ull);
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot start: %s", strerror(-err)) : 0;
}

/* an end within an interval makes it a last, short one: what it counted is not lost */
static int in_batch(struct run *run)
{
	int status;

	msg("ready");
	watch_go(&run->watch);
	status = watch_loop(&run->watch, on_tick, run);
	if (!status && (!run->config.iterations || run->report.number < run->config.iterations))
		status = on_tick(run);
	return status;
}

static int on_start(void *context, const char *file)
{
	struct run *run = context;
	int status;

	(void)file;
	status = window_open(run);
	if (status)
		probes_end(&run->probes, &run->report);
	return status;
}

static int on_report(void *context)
{
	return on_tick(context);
}

static int on_stop(void *context)
{
	struct run *run = context;

	probes_end(&run->probes, &run->report);
	return on_tick(run);
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

/* of the capabilities, for the network namespaces of other users' processes */
static __u64 needs(const struct run *run)
{
	return run->choice.named || run->choice.places.netns ? CAPABILITY(CAP_SYS_PTRACE) : 0;
}

static int measure(struct run *run)
{
	int status = start(run);

	status = status ?: capability_give_up(needs(run));
	if (status)
		return status;
	return run->config.batch ? in_batch(run) : on_screen(run);
}

static void finish(struct run *run)
{
	watch_close(&run->watch);
	probes_end(&run->probes, &run->report);
	probes_close(&run->probes);
	qp_list_free(&run->report.list);
}

int main(int argc, char **argv)
{
	static struct run run;
	int status;

	msg_program = "rxetop";
	status = config_parse(&run.config, argc, argv);
	if (status >= 0)
		return status;
	session_init(&run.report.session, &run.config.session);
	status = begin(&run);
	if (!status)
		status = run.config.session.control ? obey(&run) : measure(&run);
	status = status ?: run.watch.status;
	finish(&run);
	return status;
}
