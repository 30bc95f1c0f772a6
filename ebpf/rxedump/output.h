/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where blocks or lines go: a file, a series of files, or a stream. Whole blocks are written, so
 * that a file is readable up to the last, whatever happens to its writer.
 */
#ifndef RXEDUMP_OUTPUT_H
#define RXEDUMP_OUTPUT_H

#include <linux/types.h>
#include <stdbool.h>

#include "pcapng.h"

struct output {
	const char *path; /* NULL: standard output */
	__u64 file_limit; /* bytes; 0: none */
	unsigned int files;
	int interrupt; /* a descriptor that, readable, ends a wait for the reader */
	struct pcapng_buffer buffer;
	__u64 written;	     /* bytes of this file, without the buffer */
	unsigned int number; /* of this file, from 0 */
	int fd;
	bool stream; /* a pipe or socket: its reader may be slow, or gone */
	bool gone;   /* nobody reads any more */
	int error;   /* errno of a failed write */
};

/* 0 or a negative errno */
int output_open(struct output *o);
/* Write out the buffer. False: it cannot be written (gone, or error). */
bool output_flush(struct output *o);
/* Will a block of that size make the file too long? */
bool output_is_full(const struct output *o, size_t block);
/* End this file, begin the next. 0 or a negative errno. */
int output_next(struct output *o);
/* Flush and close. 0 or a negative errno. */
int output_close(struct output *o);
void output_free(struct output *o);

#endif /* RXEDUMP_OUTPUT_H */
