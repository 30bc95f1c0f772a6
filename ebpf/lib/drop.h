/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why the driver dropped a packet: its numbers and names, from tables/drop_reasons.csv. */
#ifndef ROCELAB_DROP_H
#define ROCELAB_DROP_H

#include "drop_reasons.h"

#define DROP_ENUM(id, name) DROP_##id,
enum drop_reason { DROP_REASONS(DROP_ENUM) DROP_COUNT };

/* "unknown" beyond the enum: a newer driver's */
const char *drop_name(unsigned int reason);

#endif /* ROCELAB_DROP_H */
