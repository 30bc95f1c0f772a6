/* SPDX-License-Identifier: GPL-2.0-only */
/* Owners to recognise: the benchmark, and the driver's device. */
#ifndef OWNER_TARGETS_H
#define OWNER_TARGETS_H

#include <sys/types.h>

#include "cpu_options.h"
#include "driver.h"

struct rxecpu_bpf;

/* Functions return 0, or the status to exit with after the error was printed. */

/* Before loading: names, cgroup, and whether there is such a device. */
int targets_choose(struct rxecpu_bpf *skel, const struct config *config,
		   const struct driver *driver);
/*
 * Before attaching: what can change from one window to the next. The device and the network's
 * interrupts as they are now, the given processes, and that of the command, which waits.
 */
int targets_find(struct rxecpu_bpf *skel, const struct config *config, const struct driver *driver,
		 pid_t command);

#endif /* OWNER_TARGETS_H */
