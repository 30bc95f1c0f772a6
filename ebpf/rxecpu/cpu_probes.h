/* SPDX-License-Identifier: GPL-2.0-only */
/* Load, calibrate, attach, detach. */
#ifndef CPU_PROBES_H
#define CPU_PROBES_H

#include <sys/types.h>

#include "cpu_options.h"
#include "cpu_report.h"
#include "cpu_sampler.h"
#include "cpu_stacks.h"

struct probes {
	struct rxecpu_bpf *skel;
	struct sampler sampler;
	struct stacks stacks;
};

/* Functions that return int return 0, or the status to exit with after the error was printed. */

/* Up to loaded programs, calibrated. */
int probes_load(struct probes *p, const struct config *config, struct report *report);
/*
 * Up to running accounts, which are empty; again after an end. command: the process that waits to
 * be the benchmark, or 0. After an error, it has ended.
 */
int probes_begin(struct probes *p, const struct config *config, struct report *report,
		 pid_t command);
/* Detach. What was counted can still be read. */
void probes_end(struct probes *p, struct report *report);
/* The programs' own counts. */
void probes_account(const struct probes *p, struct report *report);
/* After probes_end(). */
void probes_close(struct probes *p);

#endif /* CPU_PROBES_H */
