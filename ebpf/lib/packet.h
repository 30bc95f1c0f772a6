/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The driver's records in our own memory: the same layout (make check compares), without the
 * relocations that reading them in place needs and that no stock driver could satisfy.
 */
#ifndef ROCELAB_PACKET_H
#define ROCELAB_PACKET_H

#include <linux/types.h>

#include "rxe_record.bpf.h"

struct packet_id {
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
};

struct packet_tx {
	struct packet_id id;
	__u32 stage[RXE_TX_STAGES];
};

struct packet_rx {
	struct packet_id id;
	__u32 stage[RXE_RX_STAGES];
};

struct packet_done {
	struct packet_id id;
	__u32 stage[RXE_DONE_STAGES];
};

#endif /* ROCELAB_PACKET_H */
