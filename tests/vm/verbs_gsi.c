// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Send a datagram to the general service interface of a peer on this machine, whose receiver is the
 * kernel: verbs_gsi DEVICE PEER NETDEV VERSION PEER_NETDEV
 *
 * The GIDs are those of the network devices and of that RoCE version (1, 2). Needs CAP_NET_RAW for
 * the Q_Key. Says "sent" when the datagram has left.
 */
#include <net/if.h>
#include <poll.h>

#include "verbs_setup.h"

#define GSI_QKEY 0x80010000
#define MAD	 256

static struct ibv_gid_entry gid_of(struct ibv_context *context, const char *netdev, int version)
{
	uint32_t type = version == 1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
	struct ibv_gid_entry table[64];
	ssize_t n = ibv_query_gid_table(context, table, 64, 0);

	while (n-- > 0)
		if (table[n].gid_type == type && is_ipv4(&table[n].gid) &&
		    table[n].ndev_ifindex == if_nametoindex(netdev))
			return table[n];
	fprintf(stderr, "%s has no RoCE v%d GID of %s\n", ibv_get_device_name(context->device),
		version, netdev);
	exit(1);
}

int main(int argc, char **argv)
{
	static char mad[MAD]; /* version 0 of the MAD header: the receiver drops it */

	CHECK(argc == 6);
	struct ibv_context *context = open_device(argv[1]);
	struct ibv_gid_entry from = gid_of(context, argv[3], atoi(argv[4]));
	struct ibv_gid_entry to = gid_of(open_device(argv[2]), argv[5], atoi(argv[4]));
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, channel, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, mad, sizeof(mad), 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_ah_attr way = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = to.gid, .sgid_index = from.gid_index, .hop_limit = 1}};
	struct ibv_ah *ah = ibv_create_ah(pd, &way);
	struct ibv_sge sge = {(uintptr_t)mad, sizeof(mad), mr->lkey};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {.ah = ah, .remote_qpn = 1, .remote_qkey = GSI_QKEY}};
	struct ibv_wc wc;
	void *nothing;

	CHECK(mr && qp && ah);
	CHECK(!to_init(qp, IBV_QPT_UD));
	CHECK(!to_rts(qp, &(struct connection){.type = IBV_QPT_UD}));
	CHECK(!ibv_req_notify_cq(cq, 0));
	CHECK(!ibv_post_send(qp, &wr, &bad));
	CHECK(!ibv_get_cq_event(channel, &cq, &nothing));
	CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	printf("sent\n");
	return 0;
}
