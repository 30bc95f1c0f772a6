/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages of the probes: what failed, the likely cause, what to do. */
#ifndef ROCELAB_MSG_H
#define ROCELAB_MSG_H

#include <stdbool.h>

/* exit statuses that all probes share (docs/man) */
enum {
	EXIT_RUN = 1,	  /* failed while running */
	EXIT_USAGE = 2,	  /* bad option or argument */
	EXIT_MISSING = 3, /* this machine or driver lacks something */
	EXIT_NOEXEC = 126,
	EXIT_NOCOMMAND = 127,
};

extern const char *msg_program;
/* also what libraries say */
extern bool msg_verbose;

/* one line on stderr, after the program's name */
void msg(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* three lines on stderr; cause and action may be NULL. Returns status. */
int msg_error(int status, const char *cause, const char *action, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* that writing what failed with err, a negative errno, and why it did. Returns EXIT_RUN. */
int msg_not_written(const char *what, int err);
/* the same for a file that could not be opened for writing: EXIT_USAGE if another name would do */
int msg_not_opened(const char *path, int err);

#endif /* ROCELAB_MSG_H */
