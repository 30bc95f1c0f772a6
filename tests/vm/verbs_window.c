// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Type 2 memory windows without a binding, and bound to a queue pair that is gone.
 *
 *   verbs_window DEVICE PEER
 *
 * Both ends are in this process, over RoCE v2. Prints "ok", and ends while a window is bound.
 */
#include "verbs_ends.h"

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
	CHECK(bind_window(mw, rkey = ibv_inc_rkey(rkey)) == IBV_WC_SUCCESS);
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
	CHECK(bind_window(mw, rkey = ibv_inc_rkey(rkey)) == IBV_WC_SUCCESS);
	CHECK(write_through(rkey) == IBV_WC_SUCCESS);
	printf("ok\n");
	return 0;
}
