/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks, errors and choices that every probe needs before it loads its BPF programs. */
#ifndef ROCELAB_LOAD_H
#define ROCELAB_LOAD_H

#include <linux/types.h>
#include <stdbool.h>

#include "driver.h"

struct bpf_object;
struct bpf_program;

/*
 * Functions that return int return 0, or print the error and return the exit status.
 */

/*
 * Check for capabilities, with or without those for a module's events. From here on, libbpf's
 * messages are kept for load_error().
 */
int load_begin(bool of_module);
/* Check that the driver is loaded and has types. */
int load_check_driver(const struct driver *driver);
/* err: libbpf's error, negative */
int load_error(int err);
/*
 * Of the programs that watch packets, load those for the loaded driver: those that need its events,
 * or those named stock_…, each of which needs its function in the module's types. Of these, only
 * `arrival` (NULL: none) may be missing; it is then left out and *no_arrival is set.
 */
int load_choose_driver(struct bpf_object *object, const struct driver *driver,
		       bool (*needs_events)(const char *program), struct bpf_program *arrival,
		       bool *no_arrival);
/* Whether a program that watches packets watches received ones; the others watch sent ones. */
bool load_watches_received(const struct bpf_program *program);
/* Index of an RDMA device by its name. */
int load_find_device(const char *name, __u32 *index);
/* Make the kernel time every run of every BPF program while *fd is open. */
int load_enable_stats(int *fd);

/* the kernel's statistics of one BPF program */
struct program_stats {
	char name[64];
	__u64 runs, run_ns; /* 0 unless the kernel keeps statistics */
	__u64 missed;	    /* skipped because it was already running on that CPU */
};
/* The statistics of the loaded programs of events and functions. Returns how many, at most max. */
int load_program_stats(const struct bpf_object *object, struct program_stats *stats, int max);

#endif /* ROCELAB_LOAD_H */
