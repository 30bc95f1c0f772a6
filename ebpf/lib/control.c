// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "msg.h"
#include "text.h"
#include "watch.h"

/* the answer to a command that was not carried out; the cause has been printed, or follows */
static void refuse(const char *why)
{
	msg("error: %s", why);
}

static void answer(int status, const char *done, const char *failed)
{
	if (status)
		refuse(failed);
	else
		msg("%s", done);
}

static void start(struct control *c, const char *file)
{
	int status;

	if (c->started)
		return refuse("it is started already: stop first");
	if (file && !c->actions->takes_file)
		return refuse("start takes no file");
	status = c->actions->start(c->context, file);
	c->started = !status;
	c->held = false;
	answer(status, "started", "start failed");
}

static void hold(struct control *c)
{
	int (*end)(void *context) = c->actions->hold ?: c->actions->stop;

	if (!c->started)
		return refuse("it is not started");
	c->started = false;
	c->held = true;
	answer(end(c->context), "held", "hold failed");
}

static int release(const struct control *c)
{
	return c->actions->release ? c->actions->release(c->context) : 0;
}

static void stop(struct control *c)
{
	int (*end)(void *context) = c->actions->stop;

	if (!c->started && !c->held)
		return refuse("it is not started");
	answer(c->started ? end(c->context) : release(c), "stopped", "stop failed");
	c->started = false;
	c->held = false;
}

static void report(struct control *c)
{
	if (!c->started)
		return refuse("it is not started");
	answer(c->actions->report(c->context), "reported", "report failed");
}

static void unknown(const char *word)
{
	char escaped[4 * 16 + 1];

	text_escaped(escaped, sizeof(escaped), word);
	msg("error: no command '%s': start, stop, hold, report or ping", escaped);
}

static void carry_out(struct control *c, char *line)
{
	const struct control_command command = control_parse(line);

	if (command.verb == CONTROL_START)
		start(c, command.argument);
	else if (command.verb == CONTROL_UNKNOWN)
		unknown(command.word);
	else if (command.argument)
		refuse("only start takes a file");
	else if (command.verb == CONTROL_HOLD)
		hold(c);
	else if (command.verb == CONTROL_STOP)
		stop(c);
	else if (command.verb == CONTROL_REPORT)
		report(c);
	else
		msg("pong");
}

void control_on_input(struct control *c)
{
	bool too_long;
	char *line, *room;
	size_t size;
	ssize_t n;

	room = control_lines_room(&c->lines, &size);
	n = read(STDIN_FILENO, room, size);
	if (n <= 0) {
		if (!n || (errno != EINTR && errno != EAGAIN))
			c->watch->ended = true;
		return;
	}
	control_lines_add(&c->lines, n);
	while (!c->watch->ended && (line = control_lines_take(&c->lines, &too_long))) {
		if (too_long)
			refuse("the line is too long");
		else
			carry_out(c, line);
	}
}

static void on_input(void *context)
{
	control_on_input(context);
}

void control_open(struct control *c, struct watch *w, const struct control_actions *actions,
		  void *context)
{
	*c = (struct control){.actions = actions, .context = context, .watch = w};
	/* who reads the reports may have gone: standard input ends then, too */
	signal(SIGPIPE, SIG_IGN);
	watch_input(w, on_input, c);
}
