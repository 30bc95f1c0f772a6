/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Frees a received packet so that the network stack knows its fate: drop
 * monitors see those packets only that rxe drops.
 */
#ifndef RXE_DROP_H
#define RXE_DROP_H

#include <linux/skbuff.h>

#include "rxe_event.h"

/*
 * The core's name for a reason, where it has one. Subsystems with names of
 * their own are an enum of the core, which a module cannot extend.
 */
static inline enum skb_drop_reason rxe_skb_drop_reason(enum rxe_drop_reason reason)
{
	switch (reason) {
	case RXE_DROP_NO_MEMORY:
		return SKB_DROP_REASON_NOMEM;
	case RXE_DROP_SHORT:
		return SKB_DROP_REASON_HDR_TRUNC;
	case RXE_DROP_OPCODE:
	case RXE_DROP_VERSION:
	case RXE_DROP_GRH:
		return SKB_DROP_REASON_UNHANDLED_PROTO;
	case RXE_DROP_QPN:
	case RXE_DROP_MCAST_GROUP:
		return SKB_DROP_REASON_NO_SOCKET;
	case RXE_DROP_ICRC:
		return SKB_DROP_REASON_SKB_CSUM;
	case RXE_DROP_NO_RQ_WQE:
		return SKB_DROP_REASON_SOCKET_RCVBUFF;
	case RXE_DROP_OTHERHOST:
		return SKB_DROP_REASON_OTHERHOST;
	default:
		return SKB_DROP_REASON_NOT_SPECIFIED;
	}
}

static inline void rxe_free_skb(struct sk_buff *skb, enum rxe_drop_reason reason)
{
	if (likely(reason == RXE_DROP_NONE))
		consume_skb(skb);
	else
		kfree_skb_reason(skb, rxe_skb_drop_reason(reason));
}

/* a packet in a queue of its QP is dropped; it is freed when it leaves that */
static inline void rxe_drop_queued(struct rxe_qp *qp, struct sk_buff *skb,
				   enum rxe_drop_reason reason)
{
	SKB_TO_PKT(skb)->drop_reason = reason;
	rxe_trace_drop_queued(qp, skb, reason);
}

#endif /* RXE_DROP_H */
