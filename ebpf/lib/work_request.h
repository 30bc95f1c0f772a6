/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What work_request.bpf.h stores of posted work requests, and names for its reader. */
#ifndef ROCELAB_WORK_REQUEST_H
#define ROCELAB_WORK_REQUEST_H

#include <linux/types.h>

#define WORK_ENTRIES 65536 /* work requests that wait for their completion, of all queue pairs */
#define WORK_QUEUES  4096
#define WORK_BATCH   256 /* that one doorbell posts; of more, the rest is not followed */

/* who posts: the queue pair's number, and above it the device's index; 0 is nobody */
#define WORK_QP(dev, qpn) ((dev) << 24 | (qpn))

struct work_posted {
	__u64 time; /* 0: none waits here */
	__u32 qp;
	__u32 index; /* in its send queue */
};

struct work_queue {
	__u64 queue; /* address of its struct rxe_queue */
	__u32 qp;
	__u32 producer; /* the index after the last work request posted */
};

/* enum ib_wc_opcode, as the verbs spell it: "RDMA_READ"; "OTHER" beyond those */
const char *work_opcode_name(unsigned int opcode);

#endif /* ROCELAB_WORK_REQUEST_H */
