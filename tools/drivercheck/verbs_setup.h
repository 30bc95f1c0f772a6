/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every verbs test program does first: open a device, choose a GID, connect a queue pair. */
#ifndef VERBS_SETUP_H
#define VERBS_SETUP_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QKEY	   0x11111111
#define ALL_ACCESS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

#define CHECK(what)                                                                          \
	do {                                                                                 \
		if (!(what)) {                                                               \
			fprintf(stderr, "%s: %s (line %d): %s\n", __FILE__, #what, __LINE__, \
				strerror(errno));                                            \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

static inline struct ibv_context *open_device(const char *name)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	int n;

	CHECK(list = ibv_get_device_list(&n));
	for (int i = 0; i < n; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	CHECK(context);
	return context;
}

static inline int is_ipv4(const union ibv_gid *gid)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/* the last GID of a RoCE version (1, 2) with an IPv4 address, or without one */
static inline struct ibv_gid_entry find_gid(struct ibv_context *context, int version, int ipv4)
{
	uint32_t type = version == 1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
	struct ibv_gid_entry table[64];
	ssize_t n = ibv_query_gid_table(context, table, 64, 0);

	while (n-- > 0)
		if (table[n].gid_type == type && is_ipv4(&table[n].gid) == ipv4)
			return table[n];
	fprintf(stderr, "%s has no RoCE v%d GID %s an IPv4 address\n",
		ibv_get_device_name(context->device), version, ipv4 ? "with" : "without");
	exit(1);
}

/* what a queue pair is connected with; a UD queue pair needs the type only */
struct connection {
	enum ibv_qp_type type;
	uint32_t dest_qp_num;
	uint32_t sq_psn, rq_psn;
	union ibv_gid dgid;
	int sgid_index;
	int sl;
	enum ibv_mtu path_mtu;
	/* of RC, in the units of ibv_modify_qp(3); these are what ibv_qp_attr calls them */
	int min_rnr_timer, timeout, retry_cnt, rnr_retry;
};

/* from any state; returns 0 or an errno */
static inline int to_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

	return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

/* from RESET; returns 0 or an errno */
static inline int to_init(struct ibv_qp *qp, enum ibv_qp_type type)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qkey = QKEY,
				.qp_access_flags = ALL_ACCESS};

	return ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

/* from INIT through RTR; returns 0 or an errno */
static inline int to_rts(struct ibv_qp *qp, const struct connection *c)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
				.path_mtu = c->path_mtu,
				.dest_qp_num = c->dest_qp_num,
				.rq_psn = c->rq_psn,
				.sq_psn = c->sq_psn,
				.max_dest_rd_atomic = 16,
				.max_rd_atomic = 16,
				.min_rnr_timer = c->min_rnr_timer,
				.timeout = c->timeout,
				.retry_cnt = c->retry_cnt,
				.rnr_retry = c->rnr_retry,
				.ah_attr = {.is_global = 1,
					    .port_num = 1,
					    .sl = c->sl,
					    .grh = {.dgid = c->dgid,
						    .sgid_index = c->sgid_index,
						    .hop_limit = 64}}};
	int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rtr = IBV_QP_STATE, rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
	int error;

	if (c->type != IBV_QPT_UD)
		rtr |= connected;
	if (c->type == IBV_QPT_RC) {
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	}
	error = ibv_modify_qp(qp, &a, rtr);
	if (error)
		return error;
	a.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &a, rts);
}

#endif
