/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The events with the times of a packet. Their arguments are flat records, so
 * that a probe needs no type of the driver.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rxe

#if !defined(RXE_TRACE_STAGES_H) || defined(TRACE_HEADER_MULTI_READ)
#define RXE_TRACE_STAGES_H

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

#define RXE_NETS(EM, EML)						\
	EM(RXE_NET_V1,			"v1")				\
	EM(RXE_NET_V2_IPV4,		"v2-ipv4")			\
	EML(RXE_NET_V2_IPV6,		"v2-ipv6")

#define RXE_ROLES(EM, EML)						\
	EM(RXE_ROLE_REQUESTER,		"requester")			\
	EML(RXE_ROLE_RESPONDER,		"responder")

/* tell user space the values of the enums in the print formats */
#undef EM
#undef EML
#define EM(id, name)	TRACE_DEFINE_ENUM(id);
#define EML(id, name)	TRACE_DEFINE_ENUM(id);
RXE_OPCODES(EM, EML)
RXE_NETS(EM, EML)
RXE_ROLES(EM, EML)

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
		      { RXE_FLAG_RX_SWITCHED, "rx_switched" },		\
		      { RXE_FLAG_SLEPT, "slept" }),			\
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

#endif /* RXE_TRACE_STAGES_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rxe_trace_stages
#include <trace/define_trace.h>
