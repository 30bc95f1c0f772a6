/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The queue pairs of a device, as the kernel tracks its resources (`rdma resource show qp`). */
#ifndef ROCELAB_RDMA_QP_H
#define ROCELAB_RDMA_QP_H

#include <linux/types.h>

struct rdma_qp {
	__u32 qpn, remote_qpn; /* remote_qpn: 0 unless it is connected */
	__u32 type, state;     /* the kernel's numbers, for the names below */
	__u32 pid;	       /* of the process that made it; 0: the kernel */
};

/* Call each() for every queue pair of the device. 0 or a negative errno. */
int rdma_qp_list(__u32 dev_index, void (*each)(void *context, const struct rdma_qp *qp),
		 void *context);
/* "RC", "RTS"; "unknown" beyond what is known */
const char *rdma_qp_type_name(__u32 type);
const char *rdma_qp_state_name(__u32 state);

#endif /* ROCELAB_RDMA_QP_H */
