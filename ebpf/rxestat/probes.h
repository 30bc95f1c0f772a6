/* SPDX-License-Identifier: GPL-2.0-only */
/* Load, calibrate, attach, detach. */
#ifndef RXESTAT_PROBES_H
#define RXESTAT_PROBES_H

#include "collect.h"
#include "config.h"
#include "report.h"

struct probes {
	struct rxestat_bpf *skel;
	struct collector collector;
};

/*
 * Everything up to attached programs. Returns 0, or the status to exit with after the error was
 * printed. report gets what does not change: driver, cost, classes.
 */
int probes_start(struct probes *p, const struct config *config, struct report *report);
/* What changes: lost, the programs' own counts, devices seen. */
void probes_account(const struct probes *p, struct report *report);
/* After session_close(). */
void probes_close(struct probes *p);

#endif /* RXESTAT_PROBES_H */
