/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The events of the driver. Their arguments are flat records or plain numbers,
 * so that a probe needs no type of the driver.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rxe

#if !defined(RXE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RXE_TRACE_H

#include <linux/tracepoint.h>
#include <linux/skbuff.h>

#include "rxe_names.h"
#include "rxe_record.h"

int rxe_trace_on_tx(void);
void rxe_trace_off_tx(void);
int rxe_trace_on_rx(void);
void rxe_trace_off_rx(void);
int rxe_trace_on_done(void);
void rxe_trace_off_done(void);
int rxe_trace_on_tx_stamps(void);
void rxe_trace_off_tx_stamps(void);
int rxe_trace_on_rx_stamps(void);
void rxe_trace_off_rx_stamps(void);

/* tell user space the values of the enums in the print formats */
#undef EM
#undef EML
#define EM(id, name)	TRACE_DEFINE_ENUM(id);
#define EML(id, name)	TRACE_DEFINE_ENUM(id);
RXE_OPCODES(EM, EML)
RXE_NETS(EM, EML)
RXE_ROLES(EM, EML)
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

#define RXE_PACKET_FIELDS						\
	__field(const void *,	skbaddr)				\
	__field(u64,		begin)					\
	__field(u32,		dev)					\
	__field(u32,		qpn)					\
	__field(u32,		dqpn)					\
	__field(u32,		psn)					\
	__field(u16,		paylen)					\
	__field(u16,		payload)				\
	__field(u8,		opcode)					\
	__field(u8,		net)					\
	__field(u8,		role)					\
	__field(u8,		flags)

#define RXE_PACKET_ASSIGN						\
	do {								\
		__entry->skbaddr = skb;					\
		__entry->begin = rec->id.begin;				\
		__entry->dev = rec->id.dev;				\
		__entry->qpn = rec->id.qpn;				\
		__entry->dqpn = rec->id.dqpn;				\
		__entry->psn = rec->id.psn;				\
		__entry->paylen = rec->id.paylen;			\
		__entry->payload = rec->id.payload;			\
		__entry->opcode = rec->id.opcode;			\
		__entry->net = rec->id.net;				\
		__entry->role = rec->id.role;				\
		__entry->flags = rec->id.flags;				\
	} while (0)

#define RXE_PACKET_FMT							\
	"dev=%u net=%s op=%s role=%s qpn=%u dqpn=%u psn=%u paylen=%u "	\
	"payload=%u flags=%s skbaddr=%p begin=%llu"

#define RXE_PACKET_ARGS							\
	__entry->dev, __print_symbolic(__entry->net, RXE_NETS(EM, EML)),\
	__print_symbolic(__entry->opcode, RXE_OPCODES(EM, EML)),	\
	__print_symbolic(__entry->role, RXE_ROLES(EM, EML)),		\
	__entry->qpn, __entry->dqpn, __entry->psn, __entry->paylen,	\
	__entry->payload,						\
	__print_flags(__entry->flags, "|",				\
		      { RXE_FLAG_SWITCHED, "switched" },		\
		      { RXE_FLAG_LOOPBACK, "loopback" },		\
		      { RXE_FLAG_ARRIVED, "arrived" },			\
		      { RXE_FLAG_DONE, "done" },			\
		      { RXE_FLAG_RX_SWITCHED, "rx_switched" }),		\
	__entry->skbaddr, __entry->begin

/* a stage's field, what it is assigned, and how it is printed */
#define RXE_STAGE_FIELD(event, id, name)	__field(u32, name##_ns)
#define RXE_STAGE_ASSIGN(event, id, name)				\
	__entry->name##_ns = rec->stage[RXE_##event##_##id];
#define RXE_STAGE_FMT(event, id, name)	" " #name "_ns=%u"
#define RXE_STAGE_ARG(event, id, name)	, __entry->name##_ns

/* a packet is ready to leave: nothing of the driver is left but the hand-over */
TRACE_EVENT_FN(rxe_tx_packet,
	TP_PROTO(const struct rxe_tx_record *rec, const struct sk_buff *skb),
	TP_ARGS(rec, skb),
	TP_STRUCT__entry(
		RXE_PACKET_FIELDS
		RXE_TX_LIST(RXE_STAGE_FIELD)
	),
	TP_fast_assign(
		RXE_PACKET_ASSIGN;
		RXE_TX_LIST(RXE_STAGE_ASSIGN)
	),
	TP_printk(RXE_PACKET_FMT RXE_TX_LIST(RXE_STAGE_FMT),
		  RXE_PACKET_ARGS RXE_TX_LIST(RXE_STAGE_ARG)),
	rxe_trace_on_tx, rxe_trace_off_tx
);

/* a packet has passed the checks of arrival */
TRACE_EVENT_FN(rxe_rx_packet,
	TP_PROTO(const struct rxe_rx_record *rec, const struct sk_buff *skb),
	TP_ARGS(rec, skb),
	TP_STRUCT__entry(
		RXE_PACKET_FIELDS
		RXE_RX_LIST(RXE_STAGE_FIELD)
	),
	TP_fast_assign(
		RXE_PACKET_ASSIGN;
		RXE_RX_LIST(RXE_STAGE_ASSIGN)
	),
	TP_printk(RXE_PACKET_FMT RXE_RX_LIST(RXE_STAGE_FMT),
		  RXE_PACKET_ARGS RXE_RX_LIST(RXE_STAGE_ARG)),
	rxe_trace_on_rx, rxe_trace_off_rx
);

/* a received packet is about to be freed */
TRACE_EVENT_FN(rxe_rx_done,
	TP_PROTO(const struct rxe_done_record *rec, const struct sk_buff *skb),
	TP_ARGS(rec, skb),
	TP_STRUCT__entry(
		RXE_PACKET_FIELDS
		RXE_DONE_LIST(RXE_STAGE_FIELD)
	),
	TP_fast_assign(
		RXE_PACKET_ASSIGN;
		RXE_DONE_LIST(RXE_STAGE_ASSIGN)
	),
	TP_printk(RXE_PACKET_FMT RXE_DONE_LIST(RXE_STAGE_FMT),
		  RXE_PACKET_ARGS RXE_DONE_LIST(RXE_STAGE_ARG)),
	rxe_trace_on_done, rxe_trace_off_done
);

/* raw times, for programs that only add up; all or a sample of the packets */
#define RXE_RAW_FIELD(event, id, name)	__field(u64, name##_raw)
#define RXE_RAW_FMT(event, id, name)	" " #name "_raw=%llu"
#define RXE_RAW_ARG(event, id, name)	, __entry->name##_raw
#define RXE_END_ASSIGN(event, id, name)					\
	__entry->name##_raw = rec->end[RXE_##event##_##id];
#define RXE_RAW_ASSIGN(event, id, name)					\
	__entry->name##_raw = rec->stage[RXE_##event##_##id];
#define RXE_ARRIVAL_FIELD(event, id, name)	__field(u32, arrival_##name##_raw)
#define RXE_ARRIVAL_FMT(event, id, name)	" arrival_" #name "_raw=%u"
#define RXE_ARRIVAL_ARG(event, id, name)	, __entry->arrival_##name##_raw
#define RXE_ARRIVAL_ASSIGN(event, id, name)				\
	__entry->arrival_##name##_raw = rec->arrival[RXE_##event##_##id];

TRACE_EVENT_FN(rxe_tx_stamps,
	TP_PROTO(const struct rxe_tx_stamps *rec, const struct sk_buff *skb),
	TP_ARGS(rec, skb),
	TP_STRUCT__entry(
		RXE_PACKET_FIELDS
		RXE_TX_LIST(RXE_RAW_FIELD)
	),
	TP_fast_assign(
		RXE_PACKET_ASSIGN;
		RXE_TX_LIST(RXE_END_ASSIGN)
	),
	TP_printk(RXE_PACKET_FMT RXE_TX_LIST(RXE_RAW_FMT),
		  RXE_PACKET_ARGS RXE_TX_LIST(RXE_RAW_ARG)),
	rxe_trace_on_tx_stamps, rxe_trace_off_tx_stamps
);

TRACE_EVENT_FN(rxe_rx_stamps,
	TP_PROTO(const struct rxe_rx_stamps *rec, const struct sk_buff *skb),
	TP_ARGS(rec, skb),
	TP_STRUCT__entry(
		RXE_PACKET_FIELDS
		RXE_RX_LIST(RXE_ARRIVAL_FIELD)
		RXE_DONE_LIST(RXE_RAW_FIELD)
	),
	TP_fast_assign(
		RXE_PACKET_ASSIGN;
		RXE_RX_LIST(RXE_ARRIVAL_ASSIGN)
		RXE_DONE_LIST(RXE_RAW_ASSIGN)
	),
	TP_printk(RXE_PACKET_FMT RXE_RX_LIST(RXE_ARRIVAL_FMT)
		  RXE_DONE_LIST(RXE_RAW_FMT),
		  RXE_PACKET_ARGS RXE_RX_LIST(RXE_ARRIVAL_ARG)
		  RXE_DONE_LIST(RXE_RAW_ARG)),
	rxe_trace_on_rx_stamps, rxe_trace_off_rx_stamps
);

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
