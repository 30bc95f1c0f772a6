/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A result file. A plain file is complete or absent, unless it grows: it is written under a
 * temporary name, then renamed. A device, a pipe or the target of a symbolic link is written in
 * place.
 */
#ifndef ROCELAB_OUTFILE_H
#define ROCELAB_OUTFILE_H

#include <limits.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

struct outfile {
	FILE *stream;
	const char *replaced; /* by the temporary file; NULL: written in place */
	char temporary[PATH_MAX];
};

/*
 * Functions that return int return 0, or print the error and return the exit status.
 */

/*
 * path NULL or "-": standard output. Waits for the reader of a named pipe. One that grows is
 * written in place, so that what has been flushed can be read.
 */
int outfile_open(struct outfile *f, const char *path, bool grows);
/* The capabilities without which a file cannot be named so, as the folder is another user's. */
__u64 outfile_name_needs(const char *path);
/* Those that the commit needs. */
__u64 outfile_needs(const struct outfile *f);
/* Flush and rename; after an error no temporary file is left. */
int outfile_commit(struct outfile *f);
/* Give up and remove the temporary file. Does nothing after a commit. */
void outfile_discard(struct outfile *f);

#endif /* ROCELAB_OUTFILE_H */
