/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attaches the tracing programs of an object to their events and functions. */
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
 * Whether a program runs at events or functions; others run when we run or read them. An event's
 * program is tp_btf if it reads what arguments point to, else raw_tp: for each tp_btf the kernel
 * searches all of its types.
 */
bool attach_takes(const struct bpf_program *program);
/*
 * Attach each loaded program that is wanted (NULL: all), in reverse order of the object: an end
 * before its begin, so that nothing is seen in part. Returns 0, or prints the error and returns the
 * exit status; programs attached by then stay attached.
 */
int attach_backwards(struct attached *a, const struct bpf_object *object,
		     bool (*wanted)(const struct bpf_program *program, const void *context),
		     const void *context);
void attach_undo(struct attached *a);

#endif /* ROCELAB_ATTACH_H */
