/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Command lines of the probes. One table serves getopt and --help. Option sets that tools share
 * (session_options.h, report_options.h, packet_filter.h) and a tool's own options are parts of it.
 */
#ifndef ROCELAB_OPTIONS_H
#define ROCELAB_OPTIONS_H

#include <linux/types.h>
#include <stdbool.h>

struct option_row {
	int letter; /* above 255: no short form */
	const char *name, *argument, *help;
};

struct command_line {
	const char *purpose; /* what --help begins with, lines of 80 columns */
	const char *missing; /* causes of exit status 3: "root, driver" */
	const struct option_row *rows;
	int nrows; /* 64 at most */
};

/* take() returns OPTION_TAKEN, OPTION_OTHER if the option is not of this part, or an exit status */
enum { OPTION_TAKEN = -1, OPTION_OTHER = -2 };

struct option_part {
	int (*take)(void *into, int letter, char *value);
	void *into;
};

/*
 * Pass each option to the first part that takes it; the last part has no take(). --help and
 * --version are handled here. Options end at the first other word, the command, which is returned
 * in *command (NULL: none). Returns -1 to continue, or prints help, version or an error and returns
 * the exit status.
 */
int options_parse(const struct command_line *line, const struct option_part *parts, int argc,
		  char **argv, char ***command);

/* Print "what: 'value'" and point to --help. Returns the status of a bad option. */
int option_error(const char *what, const char *value);
/* 1 to max, decimal or with 0x */
bool option_number(const char *text, __u32 max, __u32 *number);
/* The same for take(); what: "--qpn takes 1 to 16777215, not". */
int option_take_number(const char *text, __u32 max, __u32 *number, const char *what);
/* Process IDs for take(): "17,18" is added to the n that are there, up to room. Changes the list.
 */
int option_take_pids(char *list, __u32 *pids, unsigned int *n, unsigned int room);

#endif /* ROCELAB_OPTIONS_H */
