// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/module.h>

#include "rxe.h"
#include "rxe_event.h"
#define CREATE_TRACE_POINTS
#include "rxe_trace.h"

/* names the patches and files that this module was built from */
#ifdef RXE_BUILD_ID
MODULE_VERSION(RXE_BUILD_ID);
#endif

void __rxe_trace_drop(struct rxe_qp *qp, struct rxe_pkt_info *pkt,
		      struct sk_buff *skb, enum rxe_drop_reason reason)
{
	rxe_trace_emit(rxe_drop, skb, rxe_trace_dev(qp), qp_num(qp), pkt->psn,
		       pkt->opcode, reason);
}
