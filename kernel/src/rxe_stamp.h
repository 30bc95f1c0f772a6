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

/* times are what rxe_stamp() returns; the records in ns are made of them */
struct rxe_stamp_tx {
	struct rxe_tx_stamps raw;
	struct rxe_tx_record rec;
	u64	switches;		/* of the task, at begin: rxe_stamp_switches() */
	u32	epoch;
	bool	open;
};

struct rxe_stamp_done {
	struct rxe_rx_stamps raw;
	struct rxe_done_record rec;
	u64	last;			/* start of the stage that runs now */
	u64	switches;
	u32	epoch;
	bool	open;
	u8	switched;		/* flags of the runs that have ended */
};

#endif /* RXE_STAMP_H */
