/* SPDX-License-Identifier: GPL-2.0-only */
/* Types of the driver and of the RDMA core, as far as the probes read them. CO-RE finds the rest.
 */
#ifndef ROCELAB_RXE_TYPES_BPF_H
#define ROCELAB_RXE_TYPES_BPF_H

#include <linux/types.h>
#include <stdbool.h>

#include "rxe_record.h"

struct ib_device {
	__u32 index;
} ROCELAB_CORE;

struct rxe_dev {
	struct ib_device ib_dev;
} ROCELAB_CORE;

struct ib_qp {
	struct ib_device *device;
	__u32 qp_num;
} ROCELAB_CORE;

struct rxe_queue_buf {
	__u32 producer_index; /* user space's, of a user's queue: any number */
} ROCELAB_CORE;

struct rxe_queue {
	struct rxe_queue_buf *buf;
	__u32 index_mask;
	__u32 index; /* of a send queue: the oldest work request without a completion */
} ROCELAB_CORE;

struct rxe_sq {
	struct rxe_queue *queue;
} ROCELAB_CORE;

/* an ib_qp is the beginning of its rxe_qp */
struct rxe_qp {
	struct ib_qp ibqp;
	bool is_user;
	struct rxe_sq sq;
} ROCELAB_CORE;

struct rxe_pkt_info {
	struct rxe_dev *rxe;
	struct rxe_qp *qp;
	unsigned char *hdr;
	__u32 mask;
	__u32 psn;
	__u16 paylen;
	__u8 opcode;
} ROCELAB_CORE;

struct ib_send_wr {
	struct ib_send_wr *next;
} ROCELAB_CORE;

struct ib_cq {
	struct ib_device *device;
} ROCELAB_CORE;

struct rxe_cq {
	struct ib_cq ibcq;
	bool is_user;
} ROCELAB_CORE;

struct ib_wc {
	struct ib_qp *qp;
} ROCELAB_CORE;

struct ib_uverbs_wc {
	__u32 status;
	__u32 opcode;
	__u32 qp_num;
} ROCELAB_CORE;

/* status and opcode are in the same place in both */
struct rxe_cqe {
	union {
		struct ib_wc ibwc;
		struct ib_uverbs_wc uibwc;
	};
} ROCELAB_CORE;

#endif /* ROCELAB_RXE_TYPES_BPF_H */
