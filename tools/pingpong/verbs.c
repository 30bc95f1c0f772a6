// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One reliable connection. An end has one receive outstanding, and posts the
 * next one before it sends, so that the answer never finds none. Messages are
 * solicited, and only these wake an end up. The completion of a send may come
 * after the answer; nobody waits for it while the send queue has room, as
 * nobody waits for a TCP segment's acknowledgement.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "carrier.h"
#include "tcp.h"

/* Sends whose answers have come, and whose completions may not have. Their
 * buffer is free: if one is sent again, its receiver drops it as a duplicate. */
#define ANSWERED_SENDS 8

/* What an end tells the other about its queue pair; big-endian. */
struct endpoint {
	uint32_t qpn, psn, path_mtu;
	unsigned char gid[16];
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static unsigned char *memory; /* the outgoing message, then the incoming one */
static size_t length;
static uint32_t negotiated_mtu;
static bool polls, is_received;
static unsigned int outstanding, depth; /* of the send queue */

static bool device_open(const char *name)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (int i = 0; i < count; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return context || failed("no such verbs device can be opened");
}

static bool queues_make(bool poll)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = 2,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	memory = calloc(2, length);
	pd = ibv_alloc_pd(context);
	channel = poll ? NULL : ibv_create_comp_channel(context);
	if (!memory || !pd || (!poll && !channel))
		return failed("cannot set up the device");
	cq = ibv_create_cq(context, (int)depth + 2, NULL, channel, 0);
	mr = ibv_reg_mr(pd, memory, 2 * length, IBV_ACCESS_LOCAL_WRITE);
	if (!cq || !mr)
		return failed("cannot make a completion queue or register memory");
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = ibv_create_qp(pd, &attr);
	return (qp && (poll || !ibv_req_notify_cq(cq, 1))) || failed("cannot make a queue pair");
}

static bool receive_post(void)
{
	struct ibv_sge sge = {(uintptr_t)memory + length, length, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	return !ibv_post_recv(qp, &wr, &bad) || failed("cannot post a receive");
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

static bool port_ask(const struct settings *settings, struct endpoint *local)
{
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint32_t psn;

	if (ibv_query_port(context, settings->ib_port, &port) ||
	    ibv_query_gid(context, settings->ib_port, settings->gid_index, &gid))
		return failed("the port has no such GID");
	if (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		return failed("no random number");
	local->qpn = htobe32(qp->qp_num);
	local->psn = htobe32(psn & 0xffffff);
	local->path_mtu =
		htobe32(settings->path_mtu ? settings->path_mtu : mtu_bytes(port.active_mtu));
	memcpy(local->gid, &gid, sizeof(local->gid));
	return true;
}

/* RESET to RTS: InfiniBand specification, 10.3.1 and 11.2.4.2. */
static bool connected(const struct settings *settings, const struct endpoint *local,
		      const struct endpoint *remote)
{
	uint32_t bytes = be32toh(remote->path_mtu);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = settings->ib_port,
	};
	enum ibv_mtu mtu = IBV_MTU_256;

	if (be32toh(local->path_mtu) < bytes)
		bytes = be32toh(local->path_mtu);
	while (mtu < IBV_MTU_4096 && mtu_bytes(mtu) < bytes)
		mtu++;
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return failed("cannot bring the queue pair to INIT");
	if (!receive_post())
		return false;
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = mtu;
	negotiated_mtu = mtu_bytes(mtu);
	attr.dest_qp_num = be32toh(remote->qpn) & 0xffffff;
	attr.rq_psn = be32toh(remote->psn) & 0xffffff;
	attr.min_rnr_timer = 12; /* 0.64 ms */
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = settings->ib_port;
	attr.ah_attr.grh.sgid_index = settings->gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	memcpy(&attr.ah_attr.grh.dgid, remote->gid, sizeof(remote->gid));
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return failed("cannot bring the queue pair to RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = settings->ack_timeout;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.sq_psn = be32toh(local->psn);
	return !ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) ||
	       failed("cannot bring the queue pair to RTS");
}

static bool verbs_open(const struct settings *settings, int peer)
{
	struct endpoint local = {}, remote;
	unsigned char is_ready = 1;

	polls = settings->poll;
	/* nothing but the send's completion says that a stream's receiver has it */
	depth = settings->stream ? 1 : ANSWERED_SENDS;
	length = settings->size;
	/* both must be ready to receive before either sends */
	return device_open(settings->device) && queues_make(polls) && port_ask(settings, &local) &&
	       tcp_write(peer, &local, sizeof(local), false) &&
	       tcp_read(peer, &remote, sizeof(remote), false) &&
	       connected(settings, &local, &remote) &&
	       tcp_write(peer, &is_ready, sizeof(is_ready), false) &&
	       tcp_read(peer, &is_ready, sizeof(is_ready), false);
}

static unsigned char *verbs_outgoing(void)
{
	return memory;
}

static bool sleep_until_event(void)
{
	struct ibv_cq *which;
	void *data;

	if (ibv_get_cq_event(channel, &which, &data))
		return failed("cannot wait for a completion");
	ibv_ack_cq_events(which, 1);
	return !ibv_req_notify_cq(cq, 1) || failed("cannot ask for a completion's event");
}

/* Take one completion, if there is one, which says what it completes. */
static bool completion(bool *is_there)
{
	struct ibv_wc wc;
	int found = ibv_poll_cq(cq, 1, &wc);

	*is_there = found > 0;
	if (found < 0)
		return failed("cannot poll the completion queue");
	if (!found)
		return true;
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "pingpong: a work request failed: %s (%d)\n",
			ibv_wc_status_str(wc.status), wc.status);
		return false;
	}
	if (wc.wr_id)
		is_received = true;
	else
		outstanding--;
	return true;
}

static bool sleep_until_sent(void)
{
	bool is_there;

	/* completions of sends are not solicited; one may have come before this asks */
	if (ibv_req_notify_cq(cq, 0))
		return failed("cannot ask for a completion's event");
	return completion(&is_there) && (is_there || sleep_until_event());
}

static bool verbs_send(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, length, mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
	};
	struct ibv_send_wr *bad;
	bool is_there;

	while (outstanding == depth)
		if (!completion(&is_there) || (!is_there && !polls && !sleep_until_sent()))
			return false;
	outstanding++;
	return !ibv_post_send(qp, &wr, &bad) || failed("cannot post a send");
}

static unsigned char *verbs_receive(void)
{
	bool is_there;

	while (!is_received) {
		if (!completion(&is_there))
			return NULL;
		if (!is_there && !polls && !sleep_until_event())
			return NULL;
	}
	is_received = false;
	/* the other end sends only after an answer to this, so the buffer is not
	 * overwritten yet */
	return receive_post() ? memory + length : NULL;
}

static uint32_t verbs_path_mtu(void)
{
	return negotiated_mtu;
}

static void verbs_close(void)
{
	if (qp)
		ibv_destroy_qp(qp);
	if (mr)
		ibv_dereg_mr(mr);
	if (cq)
		ibv_destroy_cq(cq);
	if (channel)
		ibv_destroy_comp_channel(channel);
	if (pd)
		ibv_dealloc_pd(pd);
	if (context)
		ibv_close_device(context);
	free(memory);
}

const struct carrier verbs_carrier = {
	.open = verbs_open,
	.outgoing = verbs_outgoing,
	.send = verbs_send,
	.receive = verbs_receive,
	.path_mtu = verbs_path_mtu,
	.close = verbs_close,
};
