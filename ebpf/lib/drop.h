/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The driver's drop reasons: numbers and names from tables/drop_reasons.csv. */
#ifndef ROCELAB_DROP_H
#define ROCELAB_DROP_H

#include "drop_reasons.h"

#define DROP_ENUM(id, name, in_task) DROP_##id,
enum drop_reason { DROP_REASONS(DROP_ENUM) DROP_COUNT };

_Static_assert(DROP_COUNT <= 64, "more reasons than bits");

/* "unknown" beyond the enum, which a newer driver may have */
const char *drop_name(unsigned int reason);

#endif /* ROCELAB_DROP_H */
