/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What goes wrong with packets: the driver's rare events, by device and reason. */
#ifndef LOSS_H
#define LOSS_H

#include <linux/types.h>

#include "rxestat.h"

enum loss_event {
	LOSS_DROP,
	LOSS_RETRANSMIT,
	LOSS_TIMEOUT,
	LOSS_NAK,
	LOSS_RNR,
	LOSS_CQ_ERROR,
	LOSS_EVENTS
};

/* numbers of an event's reasons are below this */
#define LOSS_REASONS 64

/* one device */
struct loss_place {
	__u32 tag; /* index of the device + 1; 0: none */
	__u32 unused;
	__u64 count[LOSS_EVENTS][LOSS_REASONS];
};

/* the last place is of packets that belong to no device, and of devices beyond the others */
#define LOSS_PLACES (DEV_PLACES + 1)

#endif /* LOSS_H */
