/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands of --control, a line each: from bytes as they arrive to words. */
#ifndef ROCELAB_CONTROL_LINE_H
#define ROCELAB_CONTROL_LINE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum control_verb {
	CONTROL_START,
	CONTROL_HOLD,
	CONTROL_STOP,
	CONTROL_REPORT,
	CONTROL_PING,
	CONTROL_UNKNOWN,
};

struct control_command {
	enum control_verb verb;
	const char *word;     /* as it was written */
	const char *argument; /* what follows the verb; NULL: nothing does */
};

/* a verb, a file and the end of the line */
#define CONTROL_LINE (PATH_MAX + 16)

/* start it zeroed */
struct control_lines {
	char text[CONTROL_LINE];
	size_t length; /* of what has arrived and was not taken */
	size_t taken;  /* bytes before it that a caller may still look at */
	bool too_long; /* the line that arrives has no room: it is thrown away */
};

/* Where the next bytes belong, and how many there is room for; call when all lines are taken. */
char *control_lines_room(struct control_lines *lines, size_t *room);
/* So many bytes have arrived there. */
void control_lines_add(struct control_lines *lines, size_t length);
/*
 * The next complete line without its end; NULL: it has not arrived yet. Holds until the next call
 * of a function. *too_long: it was longer than there is room for, and is "".
 */
char *control_lines_take(struct control_lines *lines, bool *too_long);

/* Split a line, which changes it: words are separated by blanks, an argument may contain some. */
struct control_command control_parse(char *line);

#endif /* ROCELAB_CONTROL_LINE_H */
