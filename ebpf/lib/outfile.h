/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A result file that is whole or not there: written beside its place, then renamed. */
#ifndef ROCELAB_OUTFILE_H
#define ROCELAB_OUTFILE_H

#include <limits.h>
#include <stdio.h>

struct outfile {
	FILE *stream;
	const char *path; /* NULL: stdout */
	char aside[PATH_MAX];
};

/*
 * Functions that return int give 0, or the status to exit with after the error was printed.
 */

/* path NULL: standard output */
int outfile_open(struct outfile *f, const char *path);
/* Flush and put in place; after an error nothing is left behind. */
int outfile_commit(struct outfile *f);
/* Give up: the file aside is removed. */
void outfile_discard(struct outfile *f);

#endif /* ROCELAB_OUTFILE_H */
