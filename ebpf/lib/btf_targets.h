/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tracepoints and functions that BPF programs name in their sections, found in one pass over a
 * kernel's types. libbpf before 1.7 searches all of these for each program.
 */
#ifndef ROCELAB_BTF_TARGETS_H
#define ROCELAB_BTF_TARGETS_H

#include <linux/types.h>
#include <stdbool.h>

struct bpf_program;
struct btf_file;

struct btf_target {
	const char *name; /* "sched_switch" of "tp_btf/sched_switch" */
	bool event;	  /* a tracepoint; else a function */
	struct bpf_program *program;
	__u32 type; /* the function's, or of the tracepoint's arguments; 0: not found */
};

/* start it zeroed */
struct btf_targets {
	struct btf_target at[128];
	unsigned int count;
};

/* Add what a program names: "tp_btf/NAME" or "raw_tp/NAME", "fentry/NAME", "fexit/NAME". False if
 * it is too many. */
bool btf_targets_add(struct btf_targets *targets, struct bpf_program *program);
/* Set each target's type if the file has it, not its base. Sorts the targets. */
void btf_targets_find(struct btf_targets *targets, const struct btf_file *file);

#endif /* ROCELAB_BTF_TARGETS_H */
