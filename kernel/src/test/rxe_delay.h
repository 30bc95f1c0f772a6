/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * For tests only: a busy delay of known length in one stage, to prove that it
 * shows in that stage and in no other. And events that are missed on request.
 */
#ifndef RXE_DELAY_H
#define RXE_DELAY_H

enum rxe_delay_point {
	RXE_DELAY_OFF,
	RXE_DELAY_TX_WQE, RXE_DELAY_TX_ALLOC, RXE_DELAY_TX_BTH,
	RXE_DELAY_TX_ROUTE, RXE_DELAY_TX_NET, RXE_DELAY_TX_COPY,
	RXE_DELAY_TX_ICRC,
	RXE_DELAY_RX_PARSE, RXE_DELAY_RX_ICRC,
	RXE_DELAY_DONE_QUEUE, RXE_DELAY_DONE_EXEC, RXE_DELAY_DONE_COPY,
	RXE_DELAY_DONE_CQE, RXE_DELAY_DONE_REPLY,
};

extern unsigned int rxe_delay_stage;
extern bool rxe_misses_task_ends;

void __rxe_delay(void);

static inline void rxe_delay(enum rxe_delay_point point)
{
	if (unlikely(READ_ONCE(rxe_delay_stage) == point))
		__rxe_delay();
}

#endif /* RXE_DELAY_H */
