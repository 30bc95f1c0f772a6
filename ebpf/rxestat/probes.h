/* SPDX-License-Identifier: GPL-2.0-only */
/* Load, calibrate, attach, detach. */
#ifndef RXESTAT_PROBES_H
#define RXESTAT_PROBES_H

#include "attach.h"
#include "collect.h"
#include "config.h"
#include "report.h"

struct probes {
	struct rxestat_bpf *skel;
	struct collector collector;
	struct attached attached;
	int stats_fd; /* keeps the kernel's run times on; -1: off */
};

/*
 * Everything up to attached programs. Returns 0, or the status to exit with after the error was
 * printed. session gets what does not change: cost, classes, driver.
 */
int probes_start(struct probes *p, const struct config *config, struct session *session);
/* No event is counted after this; the cells stay. */
void probes_detach(struct probes *p);
/* What changes: lost, the programs' own counts, devices seen. */
void probes_account(const struct probes *p, struct session *session);
void probes_close(struct probes *p);

#endif /* RXESTAT_PROBES_H */
