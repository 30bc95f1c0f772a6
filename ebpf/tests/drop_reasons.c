// SPDX-License-Identifier: GPL-2.0-only
/* The driver's names of its reasons to drop: its header and ours cannot be in one file. */
#include <stddef.h>

#include RECORD_HEADER

#define NAME(id, name) name,

extern const char *const driver_drop_reasons[];
extern const size_t driver_drop_reasons_len;

const char *const driver_drop_reasons[] = {RXE_DROP_REASONS(NAME, NAME)};
const size_t driver_drop_reasons_len = sizeof(driver_drop_reasons) / sizeof(driver_drop_reasons[0]);
