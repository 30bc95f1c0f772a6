/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Where a QP keeps the times of the packet that it works on, and the record that
 * they end in. Each half of a QP is serialised by its task, so one slot per half
 * is enough; a slot per CPU would not be, because packets nest there (loopback,
 * veth). What is the same for all packets of a QP is filled in once.
 */
#ifndef RXE_STAMP_H
#define RXE_STAMP_H

#include "rxe_record.h"

/* times are what rxe_stamp() returns, until the record is made */
struct rxe_tx_stamps {
	struct rxe_tx_record rec;
	u64	begin;
	u64	end[RXE_TX_STAGES];
	u64	switches;		/* of the task, at begin */
	u32	epoch;
	u32	ended;			/* bit per stage that has ended */
};

struct rxe_done_stamps {
	struct rxe_done_record rec;
	u64	begin;
	u64	last;			/* start of the stage that runs now */
	u64	switches;
	u64	stage[RXE_DONE_STAGES];
	u32	epoch;
	bool	open;
	bool	switched;
};

#endif /* RXE_STAMP_H */
