/* SPDX-License-Identifier: GPL-2.0-only */
/* What can be measured on this kernel and driver, and the programs for it. */
#ifndef KERNEL_FEATURES_H
#define KERNEL_FEATURES_H

#include <stdbool.h>

#include "driver.h"

struct rxecpu_bpf;

enum feature {
	FEATURE_SYSCALL,
	FEATURE_FAULT,
	FEATURE_SOCKET,
	FEATURE_VECTOR,
	FEATURE_RXE_TASKS,
	FEATURE_RXE_RECEIVE,
	FEATURES
};

/* the feature's name in JSON, and the effect of its absence */
extern const char *const feature_names[FEATURES];
extern const char *const feature_absence[FEATURES];

/*
 * Choose the programs whose events and functions are there. Returns 0, or the status to exit with
 * after the error was printed: nothing works without events of tasks and interrupts.
 */
int features_choose(struct rxecpu_bpf *skel, const struct driver *driver, bool has[FEATURES]);

#endif /* KERNEL_FEATURES_H */
