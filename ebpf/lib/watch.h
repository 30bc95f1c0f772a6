/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A probe watches until its command ends or, without one, until SIGINT, SIGTERM or SIGHUP. Signals
 * and timer ticks arrive on file descriptors.
 */
#ifndef ROCELAB_WATCH_H
#define ROCELAB_WATCH_H

#include <stdbool.h>

#include "command.h"

struct watch {
	struct command command;
	int signals; /* readable: call watch_on_signal() */
	int timer;
	/* a server in the same thread: its fd, -1: none */
	int server;
	int (*serve)(void *context);
	void *serve_context;
	void (*on_input)(void *context); /* NULL: standard input is not read */
	void *input_context;
	bool ended;
	int status; /* of the command; 0 without one */
};

/*
 * Block the signals and fork the command (NULL: none), which waits. Returns 0, or prints the error
 * and returns the exit status.
 */
int watch_open(struct watch *w, char **command);
/* The probes are attached: release the command. */
void watch_go(struct watch *w);
/* Call serve() when fd is readable, and once a second. An exit status ends the loop. */
void watch_serve(struct watch *w, int fd, int (*serve)(void *context), void *context);
/* Call on_input() when standard input is readable or has ended. */
void watch_input(struct watch *w, void (*on_input)(void *context), void *context);
void watch_on_signal(struct watch *w);
/* Tick every ns from now on (0: never), and no longer as before. 0 or a negative errno. */
int watch_set_timer(struct watch *w, unsigned long long ns);
/* Wait until it ends or on_tick returns an exit status. Returns that status, or 0. */
int watch_loop(struct watch *w, int (*on_tick)(void *context), void *context);
void watch_close(struct watch *w);

#endif /* ROCELAB_WATCH_H */
