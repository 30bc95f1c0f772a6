/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One process with both ends of an RC connection of one device, which sends to
 * itself: for the tests here.
 */
#ifndef RXE_VERBS_H
#define RXE_VERBS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KSFT_SKIP	4
#define PAGE		4096

#define RXE_REMOTE	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/* of what has to work before anything is tested */
#define rxe_need(what)							\
	do {								\
		if (!(what)) {						\
			printf("%s: %s\n", #what, strerror(errno));	\
			exit(1);					\
		}							\
	} while (0)

static struct ibv_context *rxe_context;
static struct ibv_pd *rxe_pd;
/* what requests send, and where answers go */
static unsigned char rxe_buffer[PAGE];
static struct ibv_mr *rxe_buffer_mr;

static inline void rxe_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			rxe_context = ibv_open_device(list[i]);
	rxe_need(rxe_context);
	ibv_free_device_list(list);
	rxe_need(rxe_pd = ibv_alloc_pd(rxe_context));
	rxe_need(rxe_buffer_mr = ibv_reg_mr(rxe_pd, rxe_buffer, sizeof(rxe_buffer),
					    IBV_ACCESS_LOCAL_WRITE));
}

/* RoCE v2 with the device's IPv4 address */
static inline struct ibv_gid_entry rxe_gid(void)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry table[16];
	ssize_t n = ibv_query_gid_table(rxe_context, table, 16, 0);

	while (n-- > 0)
		if (table[n].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(table[n].gid.raw, mapped, sizeof(mapped)))
			return table[n];
	printf("the device has no GID with an IPv4 address\n");
	exit(1);
}

static inline struct ibv_qp *rxe_make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp;

	rxe_need(init.send_cq = ibv_create_cq(rxe_context, 4, NULL, NULL, 0));
	init.recv_cq = init.send_cq;
	rxe_need(qp = ibv_create_qp(rxe_pd, &init));
	return qp;
}

static inline void rxe_connect(struct ibv_qp *qp, const struct ibv_qp *to)
{
	struct ibv_gid_entry gid = rxe_gid();
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = RXE_REMOTE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qp_num,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = gid.gid, .sgid_index = gid.gid_index,
				.hop_limit = 64,
			},
		},
	};

	rxe_need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	rxe_need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
				IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	rxe_need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
				IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* the owner has memory, the peer uses it */
struct rxe_pair {
	struct ibv_qp *owner, *peer;
};

static inline struct rxe_pair rxe_make_pair(void)
{
	struct rxe_pair pair = { rxe_make_qp(), rxe_make_qp() };

	rxe_connect(pair.owner, pair.peer);
	rxe_connect(pair.peer, pair.owner);
	return pair;
}

static inline void rxe_end_qp(struct ibv_qp *qp)
{
	struct ibv_cq *cq = qp->send_cq;

	rxe_need(!ibv_destroy_qp(qp));
	rxe_need(!ibv_destroy_cq(cq));
}

static inline void rxe_end_pair(struct rxe_pair pair)
{
	rxe_end_qp(pair.owner);
	rxe_end_qp(pair.peer);
}

static inline enum ibv_wc_status rxe_run(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	rxe_need(!ibv_post_send(qp, wr, &bad));
	do
		n = ibv_poll_cq(qp->send_cq, 1, &wc);
	while (!n);
	rxe_need(n == 1);
	return wc.status;
}

/* the peer reads or writes */
static inline enum ibv_wc_status rxe_request(struct rxe_pair pair, enum ibv_wr_opcode opcode,
					     uint64_t addr, uint32_t length, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)rxe_buffer, length, rxe_buffer_mr->lkey };
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 };

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	return rxe_run(pair.peer, &wr);
}

#endif /* RXE_VERBS_H */
