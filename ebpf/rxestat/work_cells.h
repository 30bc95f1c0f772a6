/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work requests by queue pair and opcode: what work_cells.bpf.h and its reader agree on. */
#ifndef RXESTAT_WORK_CELLS_H
#define RXESTAT_WORK_CELLS_H

#include "rxestat.h"
#include "work_request.h"

#define WORK_CELLS 8192

struct work_key {
	__u32 dev;
	__u32 qpn;
	__u8 opcode; /* of the completion, as work_opcode_name() has it */
	__u8 half;   /* one is written while the other is read */
	__u16 unused;
};

/* its completions come from one task, so it has one writer */
struct work_cell {
	struct stage_sum sum;
	__u64 bucket[LOGLIN_SLOTS];
};

#endif /* RXESTAT_WORK_CELLS_H */
