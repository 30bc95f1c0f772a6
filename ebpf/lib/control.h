/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --control: a probe is loaded once and measures many windows. Lines on standard input say when a
 * window begins and ends; each is answered by one line on standard error. All manuals have a
 * section CONTROL.
 */
#ifndef ROCELAB_CONTROL_H
#define ROCELAB_CONTROL_H

#include <stdbool.h>

#include "control_line.h"

struct watch;

/*
 * What a probe does in a window. Each function returns 0, or prints the error and returns an exit
 * status; the probe goes on.
 */
struct control_actions {
	/* Forget the window before and attach. After an error nothing is attached. */
	int (*start)(void *context, const char *file);
	/* Detach, also if the report cannot be printed. */
	int (*stop)(void *context);
	/* The same, but stay attached where that spares the next start; NULL: nowhere. */
	int (*hold)(void *context);
	/* Detach what was held. */
	int (*release)(void *context);
	/* Report what there is so far. */
	int (*report)(void *context);
	bool takes_file;
};

struct control {
	const struct control_actions *actions;
	void *context;
	struct watch *watch;
	struct control_lines lines;
	bool started;
	bool held;
};

/* Read commands from standard input while the watch lasts; its end is the watch's. */
void control_open(struct control *c, struct watch *w, const struct control_actions *actions,
		  void *context);
/* Standard input is readable: carry out what has arrived. For a loop that is not watch_loop(). */
void control_on_input(struct control *c);

#endif /* ROCELAB_CONTROL_H */
