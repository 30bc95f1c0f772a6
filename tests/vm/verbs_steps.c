// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A connection that does one step for each line of standard input, and waits in between.
 *
 *   verbs_steps DEVICE PEER
 *
 * Both ends are in this process, over RoCE v2. PEER's queue pair requests, DEVICE's answers. First
 * prints the numbers of both, then what it has done after each step:
 *
 *   write      a WRITE; wait for its completion
 *   post       a WRITE whose completion nobody takes
 *   send       a SEND, without waiting
 *   receive    a receive work request for it, and wait for the completion of the SEND
 *   arm        ask for an event with the next completion of the requester
 */
#include "verbs_ends.h"

enum { FIRST_PSN = 1000, RETRIES = 6, RNR_TIMER = 0 /* 655 ms */, TIMEOUT = 19 /* 2.1 s */ };

static void join(struct end *e, const struct end *other)
{
	struct connection c = {.type = IBV_QPT_RC,
			       .dest_qp_num = other->qp->qp_num,
			       .sq_psn = FIRST_PSN,
			       .rq_psn = FIRST_PSN,
			       .dgid = other->gid,
			       .sgid_index = e->gid_index,
			       .path_mtu = IBV_MTU_1024,
			       .min_rnr_timer = RNR_TIMER,
			       .timeout = TIMEOUT,
			       .retry_cnt = RETRIES,
			       .rnr_retry = 7};

	CHECK(!to_init(e->qp, c.type));
	CHECK(!to_rts(e->qp, &c));
}

static void post(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {(uintptr_t)peer.memory, 64, peer.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = SEND,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1};
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)owner.memory;
	wr.wr.rdma.rkey = owner.mr->rkey;
	CHECK(!ibv_post_send(peer.qp, &wr, &bad));
}

static void receive(void)
{
	struct ibv_sge sge = {(uintptr_t)owner.memory, MEMORY, owner.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = RECEIVE, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(owner.qp, &wr, &bad));
}

static void step(const char *name)
{
	if (!strcmp(name, "write")) {
		post(IBV_WR_RDMA_WRITE);
		CHECK(completion(&peer, SEND) == IBV_WC_SUCCESS);
	} else if (!strcmp(name, "post")) {
		post(IBV_WR_RDMA_WRITE);
	} else if (!strcmp(name, "send")) {
		post(IBV_WR_SEND);
	} else if (!strcmp(name, "receive")) {
		receive();
		CHECK(completion(&peer, SEND) == IBV_WC_SUCCESS);
	} else {
		CHECK(!strcmp(name, "arm"));
		CHECK(!ibv_req_notify_cq(peer.cq, 0));
	}
}

int main(int argc, char **argv)
{
	char line[32];

	if (argc != 3) {
		fprintf(stderr, "usage: verbs_steps DEVICE PEER\n");
		return 2;
	}
	open_end(&owner, argv[1]);
	open_end(&peer, argv[2]);
	make_qp(&owner);
	make_qp(&peer);
	join(&owner, &peer);
	join(&peer, &owner);
	printf("connected %u %u\n", owner.qp->qp_num, peer.qp->qp_num);
	fflush(stdout);
	for (int n = 1; fgets(line, sizeof(line), stdin); n++) {
		line[strcspn(line, "\n")] = '\0';
		step(line);
		printf("%d %s\n", n, line);
		fflush(stdout);
	}
	return 0;
}
