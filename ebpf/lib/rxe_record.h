/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records of the driver's tracepoints. Each layout has two types. rxe_… is read in the driver's
 * memory: CO-RE finds each field by name in the module's BTF, so the driver may append fields.
 * packet_… is the probe's copy, without relocations, because the stock driver has no such types.
 * make check compares this header with the driver's.
 */
#ifndef ROCELAB_RXE_RECORD_H
#define ROCELAB_RXE_RECORD_H

#include <linux/types.h>

#include "stages.h"

#ifdef __bpf__
#define ROCELAB_CORE __attribute__((preserve_access_index))
#else
#define ROCELAB_CORE
#endif

#define RXE_TX_ENUM(id, ...)   RXE_TX_##id,
#define RXE_RX_ENUM(id, ...)   RXE_RX_##id,
#define RXE_DONE_ENUM(id, ...) RXE_DONE_##id,
enum rxe_tx_stage { TX_PACKET_STAGES(RXE_TX_ENUM) RXE_TX_STAGES };
enum rxe_rx_stage { RX_PACKET_STAGES(RXE_RX_ENUM) RXE_RX_STAGES };
enum rxe_done_stage { RX_DONE_STAGES(RXE_DONE_ENUM) RXE_DONE_STAGES };

/* which packets pass a stage; of the others its value is 0 */
enum rxe_passed { RXE_PASSED_ALL, RXE_PASSED_REQUESTS, RXE_PASSED_SOME, RXE_PASSED_OBSERVED };

enum rxe_net { RXE_NET_V1 = 1, RXE_NET_V2_IPV4 = 2, RXE_NET_V2_IPV6 = 3 };
enum rxe_role { RXE_ROLE_REQUESTER, RXE_ROLE_RESPONDER };

#define RXE_FLAG_SWITCHED 0x01
#define RXE_FLAG_LOOPBACK 0x02
/* of rxe_rx_stamps */
#define RXE_FLAG_ARRIVED     0x04
#define RXE_FLAG_DONE	     0x08
#define RXE_FLAG_RX_SWITCHED 0x10
#define RXE_FLAG_SLEPT	     0x20

#define DEFINE_RECORDS(id_type, tx_type, rx_type, done_type, attributes) \
	struct id_type {                                                 \
		__u64 begin;                                             \
		__u32 dev;                                               \
		__u32 qpn;                                               \
		__u32 dqpn;                                              \
		__u32 psn;                                               \
		__u16 paylen;                                            \
		__u16 payload;                                           \
		__u8 opcode;                                             \
		__u8 net;                                                \
		__u8 role;                                               \
		__u8 flags;                                              \
	} attributes;                                                    \
	struct tx_type {                                                 \
		struct id_type id;                                       \
		__u32 stage[RXE_TX_STAGES];                              \
	} attributes;                                                    \
	struct rx_type {                                                 \
		struct id_type id;                                       \
		__u32 stage[RXE_RX_STAGES];                              \
	} attributes;                                                    \
	struct done_type {                                               \
		struct id_type id;                                       \
		__u32 stage[RXE_DONE_STAGES];                            \
	} attributes

DEFINE_RECORDS(rxe_packet_id, rxe_tx_record, rxe_rx_record, rxe_done_record, ROCELAB_CORE);
DEFINE_RECORDS(packet_id, packet_tx, packet_rx, packet_done, );

/* times as the driver took them: lib/stamp_clock.h */
struct rxe_tx_stamps {
	struct rxe_packet_id id;
	__u64 end[RXE_TX_STAGES];
} ROCELAB_CORE;

struct rxe_rx_stamps {
	struct rxe_packet_id id;
	__u64 stage[RXE_DONE_STAGES];
	__u32 arrival[RXE_RX_STAGES];
} ROCELAB_CORE;

#endif /* ROCELAB_RXE_RECORD_H */
