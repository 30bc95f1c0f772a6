/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What emits the events of rxe_trace.h. While an event is off, each place is a
 * patched-out branch.
 */
#ifndef RXE_EVENT_H
#define RXE_EVENT_H

#include <linux/preempt.h>

#include "rxe_trace.h"

/*
 * A BPF program is skipped if it is already running on that CPU. On some
 * kernels, tracepoints can be preempted: the packet of the next task would then
 * have no event.
 */
#define rxe_trace_emit(event, ...)				\
	do {						\
		preempt_disable_notrace();		\
		trace_##event(__VA_ARGS__);		\
		preempt_enable_notrace();		\
	} while (0)

static inline u32 rxe_trace_dev(const struct rxe_qp *qp)
{
	return qp->ibqp.device->index;
}

void __rxe_trace_drop(struct rxe_qp *qp, struct rxe_pkt_info *pkt,
		      struct sk_buff *skb, enum rxe_drop_reason reason);

/* a packet whose QP is known is dropped */
static __always_inline void rxe_trace_drop(struct rxe_qp *qp,
					   struct rxe_pkt_info *pkt,
					   struct sk_buff *skb,
					   enum rxe_drop_reason reason)
{
	if (trace_rxe_drop_enabled())
		__rxe_trace_drop(qp, pkt, skb, reason);
}

static __always_inline void rxe_trace_drop_queued(struct rxe_qp *qp,
						  struct sk_buff *skb,
						  enum rxe_drop_reason reason)
{
	rxe_trace_drop(qp, SKB_TO_PKT(skb), skb, reason);
}

#endif /* RXE_EVENT_H */
