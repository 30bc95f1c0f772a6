/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A probe's session: where and when it runs, and its programs. */
#ifndef ROCELAB_SESSION_H
#define ROCELAB_SESSION_H

#include <linux/types.h>
#include <stdbool.h>

#include "attach.h"
#include "driver.h"
#include "load.h"
#include "session_options.h"

#define SESSION_PROGRAMS 64

struct session {
	const char *node;
	const char *accelerator;
	struct driver driver;
	bool bpf_stats; /* the kernel times the programs */
	int stats_fd;	/* while this is open; -1: closed */
	struct attached attached;
	__u64 start_ns, end_ns; /* CLOCK_MONOTONIC */
	__u64 start_wall_ns;	/* CLOCK_REALTIME */
	/* since the last session_attach(), and the kernel's counts then */
	struct program_stats programs[SESSION_PROGRAMS], before[SESSION_PROGRAMS];
	int nprograms;
};

/* Call before anything that can fail. */
void session_init(struct session *s, const struct session_options *options);
/*
 * Check for the capabilities that the kernel's events need, or also the driver's, and find the
 * driver. Returns 0, or prints the error and returns the exit status.
 */
int session_inspect(struct session *s, bool needs_driver);
/*
 * Enable statistics if wanted, then attach the programs unless they are; see attach_backwards().
 * The programs count from here on.
 */
int session_attach(struct session *s, const struct bpf_object *object,
		   bool (*wanted)(const struct bpf_program *program, const void *context),
		   const void *context);
/* Also after an error. Call before the object is destroyed. */
void session_detach(struct session *s);
/* Read the kernel's counts of the programs. */
void session_account(struct session *s, const struct bpf_object *object);
/*
 * The number of runs that the kernel skipped because the program was already running on that CPU,
 * and that it would have counted. counts() selects programs by name (NULL: all).
 */
__u64 session_missed(const struct session *s, bool (*counts)(const char *name));

#endif /* ROCELAB_SESSION_H */
