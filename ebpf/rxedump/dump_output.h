/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where blocks or lines go: a file, a series of files, or a stream. Blocks are written whole, so a
 * file is readable up to the last one even if its writer is killed.
 */
#ifndef DUMP_OUTPUT_H
#define DUMP_OUTPUT_H

#include <linux/types.h>
#include <stdbool.h>

#include "pcapng.h"

struct output {
	const char *path; /* NULL: standard output */
	__u64 file_limit; /* bytes; 0: none */
	unsigned int files;
	int interrupt; /* a descriptor that ends a wait for the reader when it is readable */
	struct pcapng_buffer buffer;
	__u64 written;	     /* bytes of this file, without the buffer */
	unsigned int number; /* of this file, from 0 */
	int fd;
	bool stream; /* a pipe or socket: its reader may be slow, or close it */
	bool gone;   /* the reader has closed it */
	int error;   /* errno of a failed write */
};

/* Forget a file that was closed, or a stream that has failed. */
void output_reset(struct output *o);
/* 0 or a negative errno */
int output_open(struct output *o);
/* Write the buffer. False: it cannot be written (gone, or error). */
bool output_flush(struct output *o);
/* Will a block of that size make the file too long? */
bool output_is_full(const struct output *o, size_t block);
/* End this file, begin the next. 0 or a negative errno. */
int output_next(struct output *o);
/* Flush and close. 0 or a negative errno. */
int output_close(struct output *o);
void output_free(struct output *o);

#endif /* DUMP_OUTPUT_H */
