/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stages of a packet, as tables/stages.csv has them. */
#ifndef ROCELAB_STAGE_H
#define ROCELAB_STAGE_H

#include <stdbool.h>

#include "driver.h"
#include "rxe_record.h"

enum direction { DIR_TX, DIR_RX, DIRECTIONS };

/* the stages of a direction, event by event, in the order in which a packet passes them */
enum {
	TX_XMIT = RXE_TX_STAGES, /* net_dev_start_xmit's, after rxe_tx_packet's */
	TX_ALL_STAGES,
	RX_DONE = RXE_RX_STAGES, /* the first of rxe_rx_done's, after rxe_rx_packet's */
	RX_ALL_STAGES = RX_DONE + RXE_DONE_STAGES,
	MAX_STAGES = TX_ALL_STAGES > RX_ALL_STAGES ? TX_ALL_STAGES : RX_ALL_STAGES
};

struct stage {
	const char *name;
	enum rxe_passed passed;
	bool in_capsule; /* part of the sum encapsulation (tx) or decapsulation (rx) */
	bool on_stock;	 /* can be measured on the stock driver */
};

extern const struct stage stages[DIRECTIONS][MAX_STAGES];
extern const int stage_count[DIRECTIONS];

static inline const char *direction_name(enum direction dir)
{
	return dir == DIR_TX ? "tx" : "rx";
}

/* whether a stage can be measured on this driver */
static inline bool stage_is_there(const struct driver *driver, enum direction dir, int stage)
{
	return driver->kind == DRIVER_INSTRUMENTED || stages[dir][stage].on_stock;
}

#endif /* ROCELAB_STAGE_H */
