/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records that the driver's tracepoints hand over, as BPF programs see them. CO-RE finds each
 * field by name in the module's BTF, so the driver may append fields; make check compares these
 * with the driver's own header.
 */
#ifndef ROCELAB_RXE_RECORD_BPF_H
#define ROCELAB_RXE_RECORD_BPF_H

#include <linux/types.h>

#ifdef __bpf__
#define ROCELAB_CORE __attribute__((preserve_access_index))
#else
#define ROCELAB_CORE
#endif

enum rxe_tx_stage {
	RXE_TX_WQE,
	RXE_TX_ALLOC,
	RXE_TX_BTH,
	RXE_TX_ROUTE,
	RXE_TX_NET,
	RXE_TX_COPY,
	RXE_TX_ICRC,
	RXE_TX_STAGES
};
enum rxe_rx_stage { RXE_RX_PARSE, RXE_RX_ICRC, RXE_RX_STAGES };
enum rxe_done_stage {
	RXE_DONE_QUEUE,
	RXE_DONE_EXEC,
	RXE_DONE_COPY,
	RXE_DONE_CQE,
	RXE_DONE_REPLY,
	RXE_DONE_STAGES
};
enum rxe_net { RXE_NET_V1 = 1, RXE_NET_V2_IPV4 = 2, RXE_NET_V2_IPV6 = 3 };
enum rxe_role { RXE_ROLE_REQUESTER, RXE_ROLE_RESPONDER };

#define RXE_FLAG_SWITCHED 0x01
#define RXE_FLAG_LOOPBACK 0x02

struct rxe_packet_id {
	__u64 begin;
	__u32 dev;
	__u32 qpn;
	__u32 dqpn;
	__u32 psn;
	__u16 paylen;
	__u16 payload;
	__u8 opcode;
	__u8 net;
	__u8 role;
	__u8 flags;
} ROCELAB_CORE;

struct rxe_tx_record {
	struct rxe_packet_id id;
	__u32 stage[RXE_TX_STAGES];
} ROCELAB_CORE;

struct rxe_rx_record {
	struct rxe_packet_id id;
	__u32 stage[RXE_RX_STAGES];
} ROCELAB_CORE;

struct rxe_done_record {
	struct rxe_packet_id id;
	__u32 stage[RXE_DONE_STAGES];
} ROCELAB_CORE;

#endif /* ROCELAB_RXE_RECORD_BPF_H */
