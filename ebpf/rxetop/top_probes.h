/* SPDX-License-Identifier: GPL-2.0-only */
/* Load, attach, choose a stage, count what was lost. */
#ifndef TOP_PROBES_H
#define TOP_PROBES_H

#include "top_report.h"

struct rxetop_bpf;

struct probes {
	struct rxetop_bpf *skel;
	int map; /* of queue pairs */
};

/* Functions that return int return 0, or the status to exit with after the error was printed. */

/* Up to loaded programs. */
int probes_load(struct probes *p, const struct config *config, struct report *report);
/* Attach, with nothing counted; again after an end. After an error, it has ended. */
int probes_begin(struct probes *p, const struct config *config, struct report *report);
/* Detach. What was counted can still be read. */
void probes_end(struct probes *p, struct report *report);
void probes_choose_stage(const struct probes *p, struct stage_choice choice);
/* What the programs counted apart from queue pairs. */
void probes_account(const struct probes *p, struct report *report);
/* Does the driver take times by the clock that was read at first? */
int probes_check_clock(const struct probes *p);
/* After probes_end(). */
void probes_close(struct probes *p);

#endif /* TOP_PROBES_H */
