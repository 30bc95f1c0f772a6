// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control_line.h"

#include <string.h>

#define BLANKS " \t\r"

/* what was taken makes room */
static void forget(struct control_lines *lines)
{
	memmove(lines->text, lines->text + lines->taken, lines->length);
	lines->taken = 0;
}

char *control_lines_room(struct control_lines *lines, size_t *room)
{
	forget(lines);
	if (lines->length == sizeof(lines->text)) {
		lines->too_long = true;
		lines->length = 0;
	}
	*room = sizeof(lines->text) - lines->length;
	return lines->text + lines->length;
}

void control_lines_add(struct control_lines *lines, size_t length)
{
	lines->length += length;
}

char *control_lines_take(struct control_lines *lines, bool *too_long)
{
	char *line = lines->text + lines->taken;
	char *end = memchr(line, '\n', lines->length);

	if (!end)
		return NULL;
	*end = '\0';
	lines->taken += end + 1 - line;
	lines->length -= end + 1 - line;
	*too_long = lines->too_long;
	if (lines->too_long)
		*line = '\0';
	lines->too_long = false;
	return line;
}

struct control_command control_parse(char *line)
{
	static const char *const verbs[CONTROL_UNKNOWN] = {
		[CONTROL_START] = "start",   [CONTROL_HOLD] = "hold", [CONTROL_STOP] = "stop",
		[CONTROL_REPORT] = "report", [CONTROL_PING] = "ping",
	};
	struct control_command command = {.verb = CONTROL_UNKNOWN};
	char *word = line + strspn(line, BLANKS), *end = line + strlen(line), *rest;

	while (end > word && strchr(BLANKS, end[-1]))
		*--end = '\0';
	command.word = word;
	rest = word + strcspn(word, BLANKS);
	if (*rest) {
		*rest++ = '\0';
		rest += strspn(rest, BLANKS);
		command.argument = rest;
	}
	for (int verb = 0; verb < CONTROL_UNKNOWN; verb++) {
		if (!strcmp(word, verbs[verb]))
			command.verb = verb;
	}
	return command;
}
