/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Command lines of the probes: one table makes getopt's and --help's. */
#ifndef ROCELAB_OPTIONS_H
#define ROCELAB_OPTIONS_H

#include <linux/types.h>
#include <stdbool.h>

struct option_row {
	int letter; /* above 255: no short form */
	const char *name, *argument, *help;
};

/* the rows of --help */
void options_print(const struct option_row *table, int rows);
/*
 * The next option's letter, its value in optarg; -1 after the last, '?' after an error that
 * getopt has printed. Options end at the first word that is none. rows: 64 at most.
 */
int options_next(const struct option_row *table, int rows, int argc, char **argv);

/* "what: 'value'" and where help is; the status of a bad option */
int option_error(const char *what, const char *value);
/* the line of --version; status 0 */
int option_version(void);
/* 1 to max, decimal or with 0x */
bool option_number(const char *text, __u32 max, __u32 *number);
/* Mark the opcodes of a list with commas, which is cut up; returns a name that is none. */
const char *option_opcodes(char *names, bool chosen[256]);

#endif /* ROCELAB_OPTIONS_H */
