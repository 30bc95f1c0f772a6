// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Type 2 memory windows without a binding, and bound to a queue pair that is gone.
 *
 *   verbs_window DEVICE PEER
 *
 * Both ends are in this process, over RoCE v2. Prints "ok", and ends while a window is bound.
 */
#include <stdint.h>

#include "verbs_setup.h"

#define MEMORY 8192
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND)

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
	struct ibv_gid_entry entry;

	e->context = open_device(name);
	entry = find_gid(e->context, 2, 1);
	e->gid = entry.gid;
	e->gid_index = entry.gid_index;
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
	struct connection c = {.type = IBV_QPT_RC,
			       .dest_qp_num = other->qp->qp_num,
			       .dgid = other->gid,
			       .sgid_index = e->gid_index,
			       .path_mtu = IBV_MTU_1024,
			       .min_rnr_timer = 1,
			       .timeout = 18,
			       .retry_cnt = 7,
			       .rnr_retry = 7};

	CHECK(!to_init(e->qp, c.type));
	CHECK(!to_rts(e->qp, &c));
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
