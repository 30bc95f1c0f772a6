/* SPDX-License-Identifier: GPL-2.0-only */
/* Load, calibrate, attach, detach. */
#ifndef DUMP_PROBES_H
#define DUMP_PROBES_H

#include "dump_capture.h"
#include "qp_owner.h"
#include "quiesce.h"

struct bpf_link;
struct ring_buffer;

struct probes {
	struct owner_choice owner;
	struct rxedump_bpf *skel;
	struct quiesce quiesce;
	struct ring_buffer *ring;
};

/* takes a record from the ring buffer; negative: stop */
typedef int (*probes_take)(void *context, void *record, size_t size);

/*
 * Everything up to loaded programs, calibrated. Returns 0, or the status to exit with after the
 * error was printed.
 */
int probes_load(struct probes *p, const struct config *config, struct session *session,
		struct calibration *cost, probes_take take, void *context);
/* From here on packets are recorded; again after probes_detach(). After an error none is. */
int probes_attach(struct probes *p, const struct config *config, struct session *session);
/* After this no packet is recorded and no program runs. 0 or a negative errno. */
int probes_detach(struct probes *p, struct session *session);
/* At the end: say how many queue pairs had no room. */
void probes_say_lost(const struct probes *p);
/* The table of later stages. */
struct dump_late *probes_late_table(const struct probes *p);
/* What was lost until now; accounts the session. */
void probes_losses(const struct probes *p, struct session *session, struct interfaces *interfaces,
		   struct losses *losses);
/* After session_detach(). */
void probes_close(struct probes *p);

#endif /* DUMP_PROBES_H */
