/* SPDX-License-Identifier: GPL-2.0-only */
/* What a clock read and a run of each program cost on this machine. */
#ifndef RXEDUMP_CALIBRATE_H
#define RXEDUMP_CALIBRATE_H

#include "capture.h"

struct rxedump_bpf;

/* Before attaching. */
void calibrate(struct rxedump_bpf *skel, const struct config *config, struct calibration *cost);

#endif /* RXEDUMP_CALIBRATE_H */
