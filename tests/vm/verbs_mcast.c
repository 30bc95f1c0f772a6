// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A queue pair in a multicast group, or one that sends to it.
 *
 *   verbs_mcast recv DEVICE GROUP     attaches, says "attached", then prints each message
 *   verbs_mcast refuse DEVICE GROUP…  attaches to all in state INIT, which receives nothing,
 *                                     says "attached", and stays
 *   verbs_mcast send DEVICE GROUP N   sends N messages "GROUP 0", "GROUP 1", … over RoCE v1
 *
 * The group is an IPv6 or an IPv4-mapped address. It is joined by verbs alone, not by IP.
 */
#include <arpa/inet.h>
#include <unistd.h>

#include "verbs_setup.h"

#define GRH   40
#define SIZE  128
#define DEPTH 64

static char buffer[DEPTH][GRH + SIZE];

/* sleeps while it waits: the driver's work queue needs the CPU */
static struct ibv_wc wait_for(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	void *context;
	int n = ibv_poll_cq(cq, 1, &wc);

	while (!n) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		/* what came between the two calls raises no event */
		n = ibv_poll_cq(cq, 1, &wc);
		if (!n) {
			CHECK(!ibv_get_cq_event(cq->channel, &cq, &context));
			ibv_ack_cq_events(cq, 1);
			n = ibv_poll_cq(cq, 1, &wc);
		}
	}
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
	return wc;
}

int main(int argc, char **argv)
{
	union ibv_gid group;

	CHECK(argc >= 4 && inet_pton(AF_INET6, argv[3], group.raw) == 1);
	struct ibv_context *context = open_device(argv[2]);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, DEPTH, NULL, channel, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	CHECK(mr && qp);
	CHECK(!to_init(qp, IBV_QPT_UD));
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(argv[1], "refuse")) {
		for (int i = 3; i < argc; i++) {
			CHECK(inet_pton(AF_INET6, argv[i], group.raw) == 1);
			CHECK(!ibv_attach_mcast(qp, &group, 0));
		}
		printf("attached\n");
		pause();
	}
	CHECK(!to_rts(qp, &(struct connection){.type = IBV_QPT_UD}));

	if (!strcmp(argv[1], "recv")) {
		struct ibv_recv_wr *bad;

		for (int i = 0; i < DEPTH; i++) {
			struct ibv_sge sge = {(uintptr_t)buffer[i], sizeof(buffer[i]), mr->lkey};
			struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

			CHECK(!ibv_post_recv(qp, &wr, &bad));
		}
		CHECK(!ibv_attach_mcast(qp, &group, 0));
		printf("attached\n");
		for (;;) {
			struct ibv_wc wc = wait_for(cq);

			printf("%s\n", buffer[wc.wr_id] + GRH);
		}
	}

	CHECK(argc == 5);
	/* multicast requires a GID of the group's address family */
	int source = find_gid(context, 1, is_ipv4(&group)).gid_index;
	struct ibv_ah_attr to = {.is_global = 1,
				 .port_num = 1,
				 .grh = {.dgid = group, .sgid_index = source, .hop_limit = 1}};
	struct ibv_ah *ah = ibv_create_ah(pd, &to);

	CHECK(ah);
	for (int i = 0; i < atoi(argv[4]); i++) {
		struct ibv_send_wr *bad;
		int length = snprintf(buffer[0], SIZE, "%s %d", argv[3], i) + 1;
		struct ibv_sge sge = {(uintptr_t)buffer[0], length, mr->lkey};
		struct ibv_send_wr wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = {.ah = ah, .remote_qpn = 0xffffff, .remote_qkey = QKEY}};

		CHECK(!ibv_post_send(qp, &wr, &bad));
		wait_for(cq);
	}
	return 0;
}
