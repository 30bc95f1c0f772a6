// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "drop.h"

#define DROP_NAME(id, name, in_task) [DROP_##id] = name,
static const char *const names[DROP_COUNT] = {DROP_REASONS(DROP_NAME)};

const char *drop_name(unsigned int reason)
{
	return reason < DROP_COUNT ? names[reason] : "unknown";
}
