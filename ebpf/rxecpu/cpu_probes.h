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

/*
 * Everything up to running accounts. command: the process that waits to be the benchmark, or 0.
 * Returns 0, or the status to exit with after the error was printed.
 */
int probes_start(struct probes *p, const struct config *config, struct report *report,
		 pid_t command);
/* The programs' own counts. */
void probes_account(const struct probes *p, struct report *report);
/* After session_close(). */
void probes_close(struct probes *p);

#endif /* CPU_PROBES_H */
