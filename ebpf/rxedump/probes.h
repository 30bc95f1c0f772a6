/* SPDX-License-Identifier: GPL-2.0-only */
/* Load, calibrate, attach, detach. */
#ifndef RXEDUMP_PROBES_H
#define RXEDUMP_PROBES_H

#include "attach.h"
#include "capture.h"
#include "load.h"
#include "quiesce.h"

struct bpf_link;
struct ring_buffer;

#define MAX_PROGRAMS 16

struct probes {
	struct rxedump_bpf *skel;
	struct attached attached;
	int stats_fd; /* keeps the kernel's run times on; -1: off */
	struct quiesce quiesce;
	struct ring_buffer *ring;
};

/* what takes a record from the ring buffer; negative: not now any more */
typedef int (*probes_take)(void *context, void *record, size_t size);

/*
 * Everything up to loaded programs, calibrated. Returns 0, or the status to exit with after the
 * error was printed.
 */
int probes_load(struct probes *p, const struct config *config, struct driver *driver,
		struct calibration *cost, probes_take take, void *context);
/* From here on packets are recorded. */
int probes_attach(struct probes *p, const struct config *config);
/* No packet is recorded after this, and no program is at work any more. 0 or a negative errno. */
int probes_detach(struct probes *p);
/* Whose late_table the slots are. */
struct dump_late *probes_late_table(const struct probes *p);
/* What was lost until now. */
void probes_losses(const struct probes *p, struct interfaces *interfaces, struct losses *losses);
int probes_statistics(const struct probes *p, struct program_stats stats[MAX_PROGRAMS]);
void probes_close(struct probes *p);

#endif /* RXEDUMP_PROBES_H */
