/* SPDX-License-Identifier: GPL-2.0-only */
/* What a clock read and a run of each program cost on this machine. */
#ifndef RXESTAT_CALIBRATE_H
#define RXESTAT_CALIBRATE_H

#include "report.h"

struct config;
struct rxestat_bpf;

/* Before attaching: it leaves counts behind, for collector_reset(). */
void calibrate(struct rxestat_bpf *skel, const struct config *config, struct calibration *cost);

#endif /* RXESTAT_CALIBRATE_H */
