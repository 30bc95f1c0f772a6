// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Type 2 memory windows without a binding, and bound to a queue pair that is gone.
 *
 *   verbs_window DEVICE PEER
 *
 * Both ends are in this process, over RoCE v2. Prints "ok", and ends while a window is bound.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY 8192
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND)

#define CHECK(what)                                                                          \
	do {                                                                                 \
		if (!(what)) {                                                               \
			fprintf(stderr, "verbs_window: %s (line %d): %s\n", #what, __LINE__, \
				strerror(errno));                                            \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

enum { RECEIVE, SEND };

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	int gid_index;
	unsigned char memory[MEMORY];
};

static struct end owner, peer;

static void open_end(struct end *e, const char *name)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct ibv_gid_entry table[64];
	struct ibv_device **list;
	ssize_t entries;
	int n;

	CHECK(list = ibv_get_device_list(&n));
	for (int i = 0; i < n; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			e->context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	CHECK(e->context);
	CHECK((entries = ibv_query_gid_table(e->context, table, 64, 0)) > 0);
	for (ssize_t i = 0; i < entries; i++)
		if (table[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(table[i].gid.raw, mapped, 12)) {
			e->gid = table[i].gid;
			e->gid_index = table[i].gid_index;
		}
	CHECK(e->pd = ibv_alloc_pd(e->context));
	CHECK(e->cq = ibv_create_cq(e->context, 16, NULL, NULL, 0));
	CHECK(e->mr = ibv_reg_mr(e->pd, e->memory, MEMORY, ACCESS));
}

static void make_qp(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};

	CHECK(e->qp = ibv_create_qp(e->pd, &init));
}

static void to_peer(struct end *e, const struct end *other)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
				.path_mtu = IBV_MTU_1024,
				.dest_qp_num = other->qp->qp_num,
				.max_dest_rd_atomic = 1,
				.min_rnr_timer = 1,
				.timeout = 18,
				.retry_cnt = 7,
				.rnr_retry = 7,
				.max_rd_atomic = 1};

	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.dgid = other->gid;
	a.ah_attr.grh.sgid_index = e->gid_index;
	a.ah_attr.grh.hop_limit = 64;
	CHECK(!ibv_modify_qp(e->qp, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(e->qp, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	a.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(e->qp, &a,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* new queue pairs on both sides, one receive posted at the owner's */
static void connect_ends(void)
{
	struct ibv_sge sge = {(uintptr_t)owner.memory, MEMORY, owner.mr->lkey};
	struct ibv_recv_wr receive = {.wr_id = RECEIVE, .sg_list = &sge, .num_sge = 1}, *bad;

	make_qp(&owner);
	make_qp(&peer);
	to_peer(&owner, &peer);
	to_peer(&peer, &owner);
	CHECK(!ibv_post_recv(owner.qp, &receive, &bad));
}

static void disconnect_ends(void)
{
	struct ibv_wc wc;

	CHECK(!ibv_destroy_qp(owner.qp));
	CHECK(!ibv_destroy_qp(peer.qp));
	while (ibv_poll_cq(owner.cq, 1, &wc) > 0 || ibv_poll_cq(peer.cq, 1, &wc) > 0)
		; /* what was flushed */
}

/* wait for what becomes of a send or a receive work request */
static enum ibv_wc_status completion(struct end *e, uint64_t wr_id)
{
	struct ibv_wc wc;
	int n;

	do {
		CHECK((n = ibv_poll_cq(e->cq, 1, &wc)) >= 0);
	} while (!n || wc.wr_id != wr_id);
	return wc.status;
}

static enum ibv_wc_status run(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->wr_id = SEND;
	wr->send_flags = IBV_SEND_SIGNALED;
	CHECK(!ibv_post_send(e->qp, wr, &bad));
	return completion(e, SEND);
}

static enum ibv_wc_status bind_window(struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};
	enum ibv_wc_status status;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info.mr = owner.mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)owner.memory;
	wr.bind_mw.bind_info.length = MEMORY;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	status = run(&owner, &wr);
	if (status == IBV_WC_SUCCESS)
		mw->rkey = rkey; /* the next binding names it */
	return status;
}

static enum ibv_wc_status invalidate(struct end *e, enum ibv_wr_opcode opcode, uint32_t rkey)
{
	struct ibv_send_wr wr = {.opcode = opcode, .invalidate_rkey = rkey};

	return run(e, &wr);
}

/* the peer writes a byte through the window */
static enum ibv_wc_status write_through(uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)peer.memory, 1, peer.mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};

	wr.wr.rdma.remote_addr = (uintptr_t)owner.memory;
	wr.wr.rdma.rkey = rkey;
	return run(&peer, &wr);
}

int main(int argc, char **argv)
{
	struct ibv_mw *mw;
	uint32_t rkey;

	if (argc != 3) {
		fprintf(stderr, "usage: verbs_window DEVICE PEER\n");
		return 2;
	}
	open_end(&owner, argv[1]);
	open_end(&peer, argv[2]);
	CHECK(mw = ibv_alloc_mw(owner.pd, IBV_MW_TYPE_2));
	rkey = mw->rkey;

	/* not bound yet: nothing to invalidate, for neither side */
	connect_ends();
	CHECK(invalidate(&owner, IBV_WR_LOCAL_INV, rkey) != IBV_WC_SUCCESS);
	disconnect_ends();
	connect_ends();
	/* it arrives, and fails where it has */
	invalidate(&peer, IBV_WR_SEND_WITH_INV, rkey);
	CHECK(completion(&owner, RECEIVE) == IBV_WC_REM_INV_REQ_ERR);
	disconnect_ends();

	connect_ends();
	CHECK(bind_window(mw, ++rkey) == IBV_WC_SUCCESS);
	CHECK(write_through(rkey) == IBV_WC_SUCCESS);
	/* the queue pair goes first, and the window serves no other one */
	disconnect_ends();
	connect_ends();
	CHECK(write_through(rkey) == IBV_WC_REM_ACCESS_ERR);
	disconnect_ends();

	/* still bound to memory: that cannot go, and another queue pair may let go of it */
	CHECK(ibv_dereg_mr(owner.mr));
	connect_ends();
	CHECK(invalidate(&owner, IBV_WR_LOCAL_INV, rkey) == IBV_WC_SUCCESS);
	CHECK(bind_window(mw, ++rkey) == IBV_WC_SUCCESS);
	CHECK(write_through(rkey) == IBV_WC_SUCCESS);
	printf("ok\n");
	return 0;
}
