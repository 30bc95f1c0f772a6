/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two connected RC queue pairs in one process: the owner has memory windows, the peer uses them. */
#ifndef VERBS_ENDS_H
#define VERBS_ENDS_H

#include <stdint.h>

#include "verbs_setup.h"

#define MEMORY 8192
#define ACCESS (ALL_ACCESS | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

enum { RECEIVE, SEND };

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	int gid_index;
	unsigned char memory[MEMORY] __attribute__((aligned(8))); /* for atomic operations */
};

static struct end owner, peer;

static inline void open_end(struct end *e, const char *name)
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

static inline void make_qp(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};

	CHECK(e->qp = ibv_create_qp(e->pd, &init));
}

static inline void to_peer(struct end *e, const struct end *other)
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
static inline void connect_ends(void)
{
	struct ibv_sge sge = {(uintptr_t)owner.memory, MEMORY, owner.mr->lkey};
	struct ibv_recv_wr receive = {.wr_id = RECEIVE, .sg_list = &sge, .num_sge = 1}, *bad;

	make_qp(&owner);
	make_qp(&peer);
	to_peer(&owner, &peer);
	to_peer(&peer, &owner);
	CHECK(!ibv_post_recv(owner.qp, &receive, &bad));
}

static inline void disconnect_ends(void)
{
	struct ibv_wc wc;

	CHECK(!ibv_destroy_qp(owner.qp));
	CHECK(!ibv_destroy_qp(peer.qp));
	while (ibv_poll_cq(owner.cq, 1, &wc) > 0 || ibv_poll_cq(peer.cq, 1, &wc) > 0)
		; /* what was flushed */
}

/* wait for what becomes of a send or a receive work request */
static inline enum ibv_wc_status completion(struct end *e, uint64_t wr_id)
{
	struct ibv_wc wc;
	int n;

	do {
		CHECK((n = ibv_poll_cq(e->cq, 1, &wc)) >= 0);
	} while (!n || wc.wr_id != wr_id);
	return wc.status;
}

static inline enum ibv_wc_status run(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->wr_id = SEND;
	wr->send_flags = IBV_SEND_SIGNALED;
	CHECK(!ibv_post_send(e->qp, wr, &bad));
	return completion(e, SEND);
}

/* what the peer may do with the owner's memory */
static inline enum ibv_wc_status peer_requests(enum ibv_wr_opcode opcode, uint64_t addr,
					       uint32_t length, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)peer.memory, length, peer.mr->lkey};
	struct ibv_send_wr wr = {.opcode = opcode, .sg_list = &sge, .num_sge = 1};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return run(&peer, &wr);
}

#endif
