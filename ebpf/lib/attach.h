/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tracing programs of an object, on their events and functions. */
#ifndef ROCELAB_ATTACH_H
#define ROCELAB_ATTACH_H

#include <stdbool.h>

struct bpf_link;
struct bpf_object;
struct bpf_program;

struct attached {
	struct bpf_link *links[64];
	int n;
};

/*
 * Attach each program that was loaded and is wanted (NULL: all), the last of the object first: an
 * end before its beginning, so that nothing is seen in part. 0, or the status to exit with after
 * the error was printed; what is attached by then stays attached.
 */
int attach_backwards(struct attached *a, const struct bpf_object *object,
		     bool (*wanted)(const struct bpf_program *program, const void *context),
		     const void *context);
void attach_undo(struct attached *a);

#endif /* ROCELAB_ATTACH_H */
