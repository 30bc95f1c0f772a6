/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The events of the driver. Their arguments are plain numbers, so that a probe
 * needs no type of the driver.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rxe

#if !defined(RXE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RXE_TRACE_H

#include <linux/tracepoint.h>
#include <linux/skbuff.h>

#include "rxe_names.h"
#include "rxe_values.h"

/* tell user space the values of the enums in the print formats */
#undef EM
#undef EML
#define EM(id, name)	TRACE_DEFINE_ENUM(id);
#define EML(id, name)	TRACE_DEFINE_ENUM(id);
RXE_OPCODES(EM, EML)
RXE_QP_STATES(EM, EML)
RXE_NAK_CODES(EM, EML)
RXE_TASKS(EM, EML)
RXE_RETRY_REASONS(EM, EML)
RXE_NAK_DIRS(EM, EML)
RXE_RNR_STEPS(EM, EML)
RXE_QP_CAUSES(EM, EML)
RXE_DROP_REASONS(EM, EML)

/* from here on a list is one of pairs for __print_symbolic() */
#undef EM
#undef EML
#define EM(id, name)	{ id, name },
#define EML(id, name)	{ id, name }

/* CPU time of the driver: its tasks, and its handler in the receive softirq */
DECLARE_EVENT_CLASS(rxe_task,
	TP_PROTO(u32 dev, u32 qpn, u32 task),
	TP_ARGS(dev, qpn, task),
	TP_STRUCT__entry(
		__field(u32,	dev)
		__field(u32,	qpn)
		__field(u32,	task)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qpn = qpn;
		__entry->task = task;
	),
	TP_printk("dev=%u qpn=%u task=%s", __entry->dev, __entry->qpn,
		  __print_symbolic(__entry->task, RXE_TASKS(EM, EML)))
);

DEFINE_EVENT(rxe_task, rxe_task_begin,
	TP_PROTO(u32 dev, u32 qpn, u32 task),
	TP_ARGS(dev, qpn, task)
);

DEFINE_EVENT(rxe_task, rxe_task_end,
	TP_PROTO(u32 dev, u32 qpn, u32 task),
	TP_ARGS(dev, qpn, task)
);

DECLARE_EVENT_CLASS(rxe_rx_call,
	TP_PROTO(u32 ifindex),
	TP_ARGS(ifindex),
	TP_STRUCT__entry(
		__field(u32,	ifindex)
	),
	TP_fast_assign(
		__entry->ifindex = ifindex;
	),
	TP_printk("ifindex=%u", __entry->ifindex)
);

DEFINE_EVENT(rxe_rx_call, rxe_rx_begin,
	TP_PROTO(u32 ifindex),
	TP_ARGS(ifindex)
);

DEFINE_EVENT(rxe_rx_call, rxe_rx_end,
	TP_PROTO(u32 ifindex),
	TP_ARGS(ifindex)
);

/* the requester goes back to psn; next_psn is where it had been */
TRACE_EVENT(rxe_retransmit,
	TP_PROTO(u32 dev, u32 qpn, u32 psn, u32 next_psn, u32 reason),
	TP_ARGS(dev, qpn, psn, next_psn, reason),
	TP_STRUCT__entry(
		__field(u32,	dev)
		__field(u32,	qpn)
		__field(u32,	psn)
		__field(u32,	next_psn)
		__field(u32,	reason)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qpn = qpn;
		__entry->psn = psn;
		__entry->next_psn = next_psn;
		__entry->reason = reason;
	),
	TP_printk("dev=%u qpn=%u psn=%u next_psn=%u reason=%s", __entry->dev,
		  __entry->qpn, __entry->psn, __entry->next_psn,
		  __print_symbolic(__entry->reason,
				   RXE_RETRY_REASONS(EM, EML)))
);

/* the retransmission timer fired; psn is the oldest without an answer */
TRACE_EVENT(rxe_timeout,
	TP_PROTO(u32 dev, u32 qpn, u32 psn, u32 next_psn, u32 retries),
	TP_ARGS(dev, qpn, psn, next_psn, retries),
	TP_STRUCT__entry(
		__field(u32,	dev)
		__field(u32,	qpn)
		__field(u32,	psn)
		__field(u32,	next_psn)
		__field(u32,	retries)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qpn = qpn;
		__entry->psn = psn;
		__entry->next_psn = next_psn;
		__entry->retries = retries;
	),
	TP_printk("dev=%u qpn=%u psn=%u next_psn=%u retries=%u",
		  __entry->dev, __entry->qpn, __entry->psn, __entry->next_psn,
		  __entry->retries)
);

TRACE_EVENT(rxe_nak,
	TP_PROTO(u32 dev, u32 qpn, u32 psn, u32 syndrome, u32 dir),
	TP_ARGS(dev, qpn, psn, syndrome, dir),
	TP_STRUCT__entry(
		__field(u32,	dev)
		__field(u32,	qpn)
		__field(u32,	psn)
		__field(u32,	syndrome)
		__field(u32,	dir)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qpn = qpn;
		__entry->psn = psn;
		__entry->syndrome = syndrome;
		__entry->dir = dir;
	),
	TP_printk("dev=%u qpn=%u psn=%u dir=%s syndrome=%s", __entry->dev,
		  __entry->qpn, __entry->psn,
		  __print_symbolic(__entry->dir, RXE_NAK_DIRS(EM, EML)),
		  __print_symbolic(__entry->syndrome,
				   RXE_NAK_CODES(EM, EML)))
);

/* timer is the 5-bit code of the AETH, IBTA volume 1, table 46 */
TRACE_EVENT(rxe_rnr,
	TP_PROTO(u32 dev, u32 qpn, u32 psn, u32 timer, u32 step),
	TP_ARGS(dev, qpn, psn, timer, step),
	TP_STRUCT__entry(
		__field(u32,	dev)
		__field(u32,	qpn)
		__field(u32,	psn)
		__field(u32,	timer)
		__field(u32,	step)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qpn = qpn;
		__entry->psn = psn;
		__entry->timer = timer;
		__entry->step = step;
	),
	TP_printk("dev=%u qpn=%u psn=%u timer=%u step=%s", __entry->dev,
		  __entry->qpn, __entry->psn, __entry->timer,
		  __print_symbolic(__entry->step, RXE_RNR_STEPS(EM, EML)))
);

/*
 * skb is still whole, or NULL where sending it failed. On arrival qpn is the QP
 * that the packet names, and dev is -1 when nobody owns the interface.
 */
TRACE_EVENT(rxe_drop,
	TP_PROTO(const struct sk_buff *skb, u32 dev, u32 qpn, u32 psn,
		 u32 opcode, u32 reason),
	TP_ARGS(skb, dev, qpn, psn, opcode, reason),
	TP_STRUCT__entry(
		__field(const void *,	skbaddr)
		__field(u32,		dev)
		__field(u32,		qpn)
		__field(u32,		psn)
		__field(u32,		len)
		__field(u32,		opcode)
		__field(u32,		reason)
	),
	TP_fast_assign(
		__entry->skbaddr = skb;
		__entry->dev = dev;
		__entry->qpn = qpn;
		__entry->psn = psn;
		__entry->len = skb ? skb->len : 0;
		__entry->opcode = opcode;
		__entry->reason = reason;
	),
	TP_printk("dev=%d op=%s qpn=%u psn=%u len=%u reason=%s skbaddr=%p",
		  __entry->dev,
		  __print_symbolic(__entry->opcode, RXE_OPCODES(EM, EML)),
		  __entry->qpn, __entry->psn, __entry->len,
		  __print_symbolic(__entry->reason,
				   RXE_DROP_REASONS(EM, EML)),
		  __entry->skbaddr)
);

TRACE_EVENT(rxe_qp_state,
	TP_PROTO(u32 dev, u32 qpn, u32 old, u32 new, u32 cause),
	TP_ARGS(dev, qpn, old, new, cause),
	TP_STRUCT__entry(
		__field(u32,	dev)
		__field(u32,	qpn)
		__field(u32,	old)
		__field(u32,	new)
		__field(u32,	cause)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qpn = qpn;
		__entry->old = old;
		__entry->new = new;
		__entry->cause = cause;
	),
	TP_printk("dev=%u qpn=%u old=%s new=%s cause=%s", __entry->dev,
		  __entry->qpn,
		  __print_symbolic(__entry->old, RXE_QP_STATES(EM, EML)),
		  __print_symbolic(__entry->new, RXE_QP_STATES(EM, EML)),
		  __print_symbolic(__entry->cause, RXE_QP_CAUSES(EM, EML)))
);

/* a completion was lost because the queue is full */
TRACE_EVENT(rxe_cq_error,
	TP_PROTO(u32 dev, u32 cqn, u32 entries),
	TP_ARGS(dev, cqn, entries),
	TP_STRUCT__entry(
		__field(u32,	dev)
		__field(u32,	cqn)
		__field(u32,	entries)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->cqn = cqn;
		__entry->entries = entries;
	),
	TP_printk("dev=%u cqn=%u entries=%u", __entry->dev, __entry->cqn,
		  __entry->entries)
);

#endif /* RXE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rxe_trace
#include <trace/define_trace.h>
