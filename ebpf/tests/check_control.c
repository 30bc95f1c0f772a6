// SPDX-License-Identifier: GPL-2.0-only
/* --control: lines from bytes however they arrive, and commands from lines. */
#include <string.h>

#include "check.h"
#include "control_line.h"

/* bytes arrive; false: there was no room for them at once */
static bool arrive(struct control_lines *lines, const char *bytes, size_t length)
{
	size_t room;
	char *at = control_lines_room(lines, &room);

	if (length > room)
		return false;
	memcpy(at, bytes, length);
	control_lines_add(lines, length);
	return true;
}

static const char *next(struct control_lines *lines)
{
	bool too_long = false;
	const char *line = control_lines_take(lines, &too_long);

	return too_long ? "(too long)" : line ?: "(none)";
}

#define CHECK_NEXT(lines, wanted)                                                 \
	do {                                                                      \
		const char *line_ = next(lines);                                  \
                                                                                  \
		CHECK(!strcmp(line_, wanted), "'%s', not '%s'", line_, (wanted)); \
	} while (0)

static void check_pieces(void)
{
	struct control_lines lines = {};

	CHECK_NEXT(&lines, "(none)");
	for (const char *c = "start /tmp/a b\n"; *c; c++) {
		CHECK_NEXT(&lines, "(none)");
		CHECK(arrive(&lines, c, 1), "no room for a byte");
	}
	CHECK_NEXT(&lines, "start /tmp/a b");
	CHECK_NEXT(&lines, "(none)");
	CHECK(arrive(&lines, "ping\nstop\n\nre", 13), "no room");
	CHECK_NEXT(&lines, "ping");
	CHECK_NEXT(&lines, "stop");
	CHECK_NEXT(&lines, "");
	CHECK_NEXT(&lines, "(none)");
	CHECK(arrive(&lines, "port\n", 5), "no room");
	CHECK_NEXT(&lines, "report");
	CHECK_NEXT(&lines, "(none)");
}

/* a line of that many bytes and its end, in pieces as they fit; then another one */
static void check_length(size_t length, const char *wanted)
{
	struct control_lines lines = {};

	for (size_t i = 0; i < length; i++) {
		CHECK(arrive(&lines, "x", 1), "no room for byte %zu", i);
		CHECK_NEXT(&lines, "(none)");
	}
	CHECK(arrive(&lines, "\nping\n", 1), "no room for the end");
	if (wanted)
		CHECK_NEXT(&lines, wanted);
	else
		CHECK(strlen(next(&lines)) == length, "it is cut");
	CHECK(arrive(&lines, "ping\n", 5), "no room for a second one");
	CHECK_NEXT(&lines, "ping");
	CHECK_NEXT(&lines, "(none)");
}

static void check_command(const char *text, enum control_verb verb, const char *argument)
{
	char line[64];
	struct control_command command;

	strcpy(line, text);
	command = control_parse(line);
	CHECK(command.verb == verb, "'%s': verb %d", text, command.verb);
	CHECK(!argument == !command.argument && (!argument || !strcmp(argument, command.argument)),
	      "'%s': argument '%s'", text, command.argument ?: "(none)");
}

int main(void)
{
	check_pieces();
	check_length(1, NULL);
	check_length(CONTROL_LINE - 1, NULL);
	check_length(CONTROL_LINE, "(too long)");
	check_length(3 * CONTROL_LINE + 7, "(too long)");

	check_command("start", CONTROL_START, NULL);
	check_command("start ", CONTROL_START, NULL);
	check_command(" start\t/tmp/a b.pcapng \r", CONTROL_START, "/tmp/a b.pcapng");
	check_command("stop", CONTROL_STOP, NULL);
	check_command("stop now", CONTROL_STOP, "now");
	check_command("hold", CONTROL_HOLD, NULL);
	check_command("report", CONTROL_REPORT, NULL);
	check_command("ping", CONTROL_PING, NULL);
	check_command("", CONTROL_UNKNOWN, NULL);
	check_command("  ", CONTROL_UNKNOWN, NULL);
	check_command("starts", CONTROL_UNKNOWN, NULL);
	check_command("star", CONTROL_UNKNOWN, NULL);
	check_command("START", CONTROL_UNKNOWN, NULL);
	return check_end("control");
}
