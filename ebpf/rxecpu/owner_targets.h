/* SPDX-License-Identifier: GPL-2.0-only */
/* Owners to recognise: the benchmark, and the driver's device. */
#ifndef OWNER_TARGETS_H
#define OWNER_TARGETS_H

#include <sys/types.h>

#include "cpu_options.h"
#include "driver.h"

struct rxecpu_bpf;

/*
 * Before loading: names, cgroup, device. Return 0, or the status to exit with after the error was
 * printed.
 */
int targets_choose(struct rxecpu_bpf *skel, const struct config *config,
		   const struct driver *driver);
/* After loading: the given processes, and that of the command, which waits. */
int targets_add(struct rxecpu_bpf *skel, const struct config *config, pid_t command);

#endif /* OWNER_TARGETS_H */
