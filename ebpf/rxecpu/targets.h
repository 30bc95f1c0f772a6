/* SPDX-License-Identifier: GPL-2.0-only */
/* Whom the accounts are kept for: the benchmark, and the device. */
#ifndef RXECPU_TARGETS_H
#define RXECPU_TARGETS_H

#include <sys/types.h>

#include "config.h"
#include "driver.h"

struct rxecpu_bpf;

/*
 * Before loading: names, cgroup, device. Return 0, or the status to exit with after the error was
 * printed.
 */
int targets_choose(struct rxecpu_bpf *skel, const struct config *config,
		   const struct driver *driver);
/* After loading: the processes given, and the command's, which waits. */
int targets_add(struct rxecpu_bpf *skel, const struct config *config, pid_t command);

#endif /* RXECPU_TARGETS_H */
