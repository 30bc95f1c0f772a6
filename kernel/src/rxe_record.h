/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The records that the rxe tracepoints pass to a probe: flat, and the same on
 * every kernel line. A probe may read them through BTF or copy them as a whole,
 * so this layout is an ABI: fields may only be appended.
 */
#ifndef RXE_RECORD_H
#define RXE_RECORD_H

#include <linux/types.h>

#include "rxe_values.h"

/*
 * The stages of each event, in the order in which a packet passes them, as
 * X(EVENT, ID, name). They are exclusive and share their edges; exec is self
 * time, without the others.
 */
/* tables/renew.py: stages */
#define RXE_TX_LIST(X)							\
	X(TX, WQE, wqe)							\
	X(TX, ALLOC, alloc)						\
	X(TX, BTH, bth)							\
	X(TX, ROUTE, route)						\
	X(TX, NET, net)							\
	X(TX, COPY, copy)						\
	X(TX, ICRC, icrc)

#define RXE_RX_LIST(X)							\
	X(RX, PARSE, parse)						\
	X(RX, ICRC, icrc)

#define RXE_DONE_LIST(X)						\
	X(DONE, QUEUE, queue)						\
	X(DONE, EXEC, exec)						\
	X(DONE, COPY, copy)						\
	X(DONE, CQE, cqe)						\
	X(DONE, REPLY, reply)
/* tables/renew.py: end */

#define RXE_STAGE_ENUM(event, id, name)	RXE_##event##_##id,

enum rxe_tx_stage { RXE_TX_LIST(RXE_STAGE_ENUM) RXE_TX_STAGES };

/* up to the queue of its QP */
enum rxe_rx_stage { RXE_RX_LIST(RXE_STAGE_ENUM) RXE_RX_STAGES };

/* from that queue to the end */
enum rxe_done_stage { RXE_DONE_LIST(RXE_STAGE_ENUM) RXE_DONE_STAGES };

enum rxe_net { RXE_NET_V1 = 1, RXE_NET_V2_IPV4 = 2, RXE_NET_V2_IPV6 = 3 };

enum rxe_role { RXE_ROLE_REQUESTER = 0, RXE_ROLE_RESPONDER = 1 };

/* the task was switched out in between: the stages contain other work */
#define RXE_FLAG_SWITCHED	0x01
/* the packet never left this host: rxe_loopback() */
#define RXE_FLAG_LOOPBACK	0x02
/* of rxe_rx_stamps: which of its stages are there, and the first flag for arrival */
#define RXE_FLAG_ARRIVED	0x04
#define RXE_FLAG_DONE		0x08
#define RXE_FLAG_RX_SWITCHED	0x10
/* RXE_FLAG_SWITCHED because the task slept: only on-demand paging lets a task of rxe sleep */
#define RXE_FLAG_SLEPT		0x20

struct rxe_packet_id {
	__u64	begin;		/* CLOCK_MONOTONIC ns: start of the first stage */
	__u32	dev;		/* ib_device index, as netlink's RDMA_NLDEV_ATTR_DEV_INDEX */
	__u32	qpn;		/* local QP */
	__u32	dqpn;		/* destination QP in the BTH */
	__u32	psn;
	__u16	paylen;		/* BTH to ICRC, both included, bytes */
	__u16	payload;	/* message bytes in this packet, without pad */
	__u8	opcode;		/* BTH opcode */
	__u8	net;		/* enum rxe_net */
	__u8	role;		/* enum rxe_role: which half of the local QP */
	__u8	flags;
};

struct rxe_tx_record {
	struct rxe_packet_id	id;
	__u32	stage[RXE_TX_STAGES];		/* ns */
};

struct rxe_rx_record {
	struct rxe_packet_id	id;
	__u32	stage[RXE_RX_STAGES];		/* ns */
};

struct rxe_done_record {
	struct rxe_packet_id	id;
	__u32	stage[RXE_DONE_STAGES];		/* ns */
};

/*
 * For programs that only add up: times as they were taken, in units of the
 * parameter stamp_clock, id.begin too. A packet has one on either side.
 */
struct rxe_tx_stamps {
	struct rxe_packet_id	id;
	__u64	end[RXE_TX_STAGES];		/* when each stage ended */
};

struct rxe_rx_stamps {
	struct rxe_packet_id	id;
	__u64	stage[RXE_DONE_STAGES];		/* how long it took */
	__u32	arrival[RXE_RX_STAGES];		/* likewise, at most 2^31 - 1 */
};

#endif /* RXE_RECORD_H */
