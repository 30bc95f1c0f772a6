// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Use up COUNT queue pair numbers of each RDMA device. rxe numbers its queue pairs from 17 on, so
 * machines that were restored from one snapshot would use the same ones.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

static int skip(struct ibv_device *device, int count)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(context, 1, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;

	if (!cq)
		return -1;
	for (; count > 0; count--) {
		qp = ibv_create_qp(pd, &attr);
		if (!qp || ibv_destroy_qp(qp))
			return -1;
	}
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	return ibv_close_device(context);
}

int main(int argc, char **argv)
{
	int n = 0, status = 0;
	struct ibv_device **devices = ibv_get_device_list(&n);

	for (int i = 0; devices && i < n; i++) {
		if (skip(devices[i], argc > 1 ? atoi(argv[1]) : 0)) {
			perror(ibv_get_device_name(devices[i]));
			status = 1;
		}
	}
	if (devices)
		ibv_free_device_list(devices);
	return status;
}
