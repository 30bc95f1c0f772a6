/* SPDX-License-Identifier: GPL-2.0-only */
/* Load, calibrate, attach, detach. */
#ifndef STAT_PROBES_H
#define STAT_PROBES_H

#include "cell_collector.h"
#include "loss_reader.h"
#include "qp_owner.h"
#include "stat_options.h"
#include "stat_report.h"

struct probes {
	struct rxestat_bpf *skel;
	struct collector collector;
	struct owner_choice owner;
	struct loss_reader losses;
};

/* Functions that return a status return 0, or the one to exit with after the error was printed. */

/*
 * Everything up to loaded programs, calibrated. Returns a status. report gets what does not change:
 * driver, cost, classes.
 */
int probes_load(struct probes *p, const struct config *config, struct report *report);
/* Attach, with nothing counted; again after an end. Returns a status; after an error, it has ended.
 */
int probes_begin(struct probes *p, const struct config *config, struct report *report);
/* Detach. What was counted can still be read. */
void probes_end(struct probes *p, struct report *report);
/*
 * Add to groups and report what was counted since the last time; see collector_poll(). 0 or a
 * negative errno.
 */
int probes_collect(struct probes *p, struct report *report, struct groups *groups);
/*
 * What changes: lost, the programs' own counts, devices seen, and losses since the last restart. 0
 * or a negative errno.
 */
int probes_account(struct probes *p, struct report *report);
/* Does the driver take times by the clock that was read at first? Returns a status. */
int probes_check_clock(const struct probes *p);
/* An interval begins where the last account was. */
void probes_restart(struct probes *p);
/* At the end of counting: say what had no room. */
void probes_say_lost(const struct probes *p, const struct report *report);
/* After probes_end(). */
void probes_close(struct probes *p, struct report *report);

#endif /* STAT_PROBES_H */
