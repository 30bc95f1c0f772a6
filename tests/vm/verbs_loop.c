// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two queue pairs in one process, on two devices of one machine (or on one device: loopback).
 * Sends batches of chained work requests from the first to the second, one at a time, and waits
 * with completion events. Nothing polls, so the driver's work queue always gets the CPU, and under
 * QEMU's -icount the cost per message repeats to about 0.1 %.
 *
 *   verbs_loop FROM TO TRANSPORT OPERATION SIZE BATCHES [CHAIN [GID]]
 *
 * TRANSPORT rc uc ud, or srq: rc with a shared receive queue at the far end
 * OPERATION send send_imm write write_imm read cas fadd, or
 *   send_late     the far end posts its receives only after it has refused the first message
 *   cq_full       more completions than the queue holds: succeeds when the device says so
 *   write_denied  a wrong key: succeeds when the first message fails with a remote access error
 * CHAIN work requests in a batch (32). GID (v2-ipv4): v1 or v2, then -ipv4, -ipv6 or -link for
 * the sort of address, then -vlan for those of a VLAN interface. In the environment: ACK_TIMEOUT
 * (14), and SERVICE_LEVEL (0) of what the first sends. Payload is checked at the end.
 * Prints one line: key=value, times in ns.
 */
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "verbs_setup.h"

#define MAX_CHAIN 128
#define MAX_SIZE  (1 << 20)
#define GRH	  40
/* a UD receive puts the GRH before the message, which stays aligned */
#define BUFFER (MAX_SIZE + 64)

struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	int receives;  /* takes a receive work request at the far end */
	int fixed;     /* bytes, for atomics */
	int late;      /* receives come after the first refusal */
	int denied;    /* the key is wrong */
	int overflows; /* nobody takes the completions */
};

static const struct operation operations[] = {
	{.name = "send", .opcode = IBV_WR_SEND, .receives = 1},
	{.name = "send_late", .opcode = IBV_WR_SEND, .receives = 1, .late = 1},
	{.name = "send_imm", .opcode = IBV_WR_SEND_WITH_IMM, .receives = 1},
	{.name = "write", .opcode = IBV_WR_RDMA_WRITE},
	{.name = "write_denied", .opcode = IBV_WR_RDMA_WRITE, .denied = 1},
	{.name = "cq_full", .opcode = IBV_WR_RDMA_WRITE, .overflows = 1},
	{.name = "write_imm", .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .receives = 1},
	{.name = "read", .opcode = IBV_WR_RDMA_READ},
	{.name = "cas", .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .fixed = 8},
	{.name = "fadd", .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .fixed = 8},
};

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	unsigned char *buffer;
	union ibv_gid gid;
	int gid_index;
};

/* a number from the environment */
static int setting(const char *name, int otherwise)
{
	const char *value = getenv(name);

	return value ? atoi(value) : otherwise;
}

/* the name of a GID's kind in GID arguments */
static const char *gid_name(const struct ibv_gid_entry *entry)
{
	static char name[64];
	char netdev[IF_NAMESIZE] = "";
	const char *address = is_ipv4(&entry->gid)				       ? "-ipv4"
			      : entry->gid.raw[0] == 0xfe && entry->gid.raw[1] == 0x80 ? "-link"
										       : "-ipv6";

	if_indextoname(entry->ndev_ifindex, netdev);
	snprintf(name, sizeof(name), "%s%s%s",
		 entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? "v2" : "v1", address,
		 strchr(netdev, '.') ? "-vlan" : "");
	return name;
}

/* by type and address, never by index; the table may have gaps */
static void choose_gid(struct end *e, const char *wanted)
{
	struct ibv_gid_entry table[64];
	ssize_t n = ibv_query_gid_table(e->context, table, sizeof(table) / sizeof(*table), 0);

	CHECK(n >= 0);
	for (ssize_t i = 0; i < n; i++) {
		if (!strcmp(gid_name(&table[i]), wanted)) {
			e->gid = table[i].gid;
			e->gid_index = table[i].gid_index;
			return;
		}
	}
	fprintf(stderr, "verbs_loop: %s has no GID %s\n", ibv_get_device_name(e->context->device),
		wanted);
	exit(1);
}

static void make(struct end *e, const char *name, enum ibv_qp_type type, int completions,
		 const char *gid, int shared)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = MAX_CHAIN, .max_sge = 1}};

	e->context = open_device(name);
	choose_gid(e, gid);
	CHECK(e->pd = ibv_alloc_pd(e->context));
	CHECK(e->channel = ibv_create_comp_channel(e->context));
	CHECK(e->cq = ibv_create_cq(e->context, completions, NULL, e->channel, 0));
	CHECK(!posix_memalign((void **)&e->buffer, 4096, BUFFER));
	memset(e->buffer, 0, BUFFER);
	CHECK(e->mr = ibv_reg_mr(e->pd, e->buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE | ALL_ACCESS));
	if (shared)
		CHECK(e->srq = ibv_create_srq(e->pd, &srq));
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.srq = e->srq,
		.qp_type = type,
		.cap = {.max_send_wr = MAX_CHAIN,
			.max_recv_wr = MAX_CHAIN,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	CHECK(e->qp = ibv_create_qp(e->pd, &init));
}

static void connect_to(struct end *e, const struct end *peer, enum ibv_qp_type type, int sl)
{
	struct connection c = {.type = type,
			       .dest_qp_num = peer->qp->qp_num,
			       .dgid = peer->gid,
			       .sgid_index = e->gid_index,
			       .sl = sl,
			       .min_rnr_timer = 12,
			       .timeout = setting("ACK_TIMEOUT", 14),
			       .retry_cnt = 7,
			       .rnr_retry = 7};
	struct ibv_port_attr port;

	CHECK(!ibv_query_port(e->context, 1, &port));
	c.path_mtu = port.active_mtu;
	CHECK(!to_init(e->qp, type));
	CHECK(!to_rts(e->qp, &c));
}

static void post_receives(struct end *e, struct ibv_recv_wr *first)
{
	struct ibv_recv_wr *bad;

	CHECK(!(e->srq ? ibv_post_srq_recv(e->srq, first, &bad)
		       : ibv_post_recv(e->qp, first, &bad)));
}

/* the driver's count of messages that it refused for lack of a receive */
static long refusals(const struct end *e)
{
	char path[256];
	long n;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/send_rnr_err",
		 ibv_get_device_name(e->context->device));
	CHECK(f = fopen(path, "r"));
	CHECK(fscanf(f, "%ld", &n) == 1);
	fclose(f);
	return n;
}

/* collects n completions of that status */
static void wait_for(struct end *e, int n, enum ibv_wc_status status)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;

	while (n > 0) {
		int got = ibv_poll_cq(e->cq, 1, &wc);

		CHECK(got >= 0);
		if (!got) {
			CHECK(!ibv_req_notify_cq(e->cq, 0));
			/* completions between the two calls raise no event */
			got = ibv_poll_cq(e->cq, 1, &wc);
			CHECK(got >= 0);
			if (!got) {
				CHECK(!ibv_get_cq_event(e->channel, &cq, &context));
				ibv_ack_cq_events(cq, 1);
				continue;
			}
		}
		if (wc.status != status) {
			fprintf(stderr, "verbs_loop: %s, not %s\n", ibv_wc_status_str(wc.status),
				ibv_wc_status_str(status));
			exit(1);
		}
		n--;
	}
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(int argc, char **argv)
{
	static struct ibv_send_wr send[MAX_CHAIN];
	static struct ibv_recv_wr receive[MAX_CHAIN];
	struct ibv_send_wr *bad_send;
	const struct operation *op = NULL;
	struct end a = {}, b = {};

	if (argc < 7 || argc > 9) {
		fprintf(stderr, "usage: verbs_loop FROM TO TRANSPORT OPERATION SIZE BATCHES "
				"[CHAIN [GID]]\n");
		return 2;
	}
	int shared = !strcmp(argv[3], "srq");
	int sl = setting("SERVICE_LEVEL", 0);
	const char *gid = argc > 8 ? argv[8] : "v2-ipv4";
	enum ibv_qp_type type = shared || !strcmp(argv[3], "rc") ? IBV_QPT_RC
				: !strcmp(argv[3], "uc")	 ? IBV_QPT_UC
								 : IBV_QPT_UD;
	for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		if (!strcmp(argv[4], operations[i].name))
			op = &operations[i];
	int size = atoi(argv[5]), batches = atoi(argv[6]), chain = argc > 7 ? atoi(argv[7]) : 32;
	if (!op || size < 0 || size > MAX_SIZE || chain < 1 || chain > MAX_CHAIN) {
		fprintf(stderr, "verbs_loop: unknown operation, or size or chain out of range\n");
		return 2;
	}
	if (op->fixed)
		size = op->fixed;

	make(&a, argv[1], type, op->overflows ? 1 : 4 * MAX_CHAIN, gid, 0);
	make(&b, argv[2], type, 4 * MAX_CHAIN, gid, shared);
	connect_to(&a, &b, type, sl);
	connect_to(&b, &a, type, 0);

	struct ibv_ah *ah = NULL;
	if (type == IBV_QPT_UD) {
		struct ibv_ah_attr attr = {
			.is_global = 1,
			.port_num = 1,
			.sl = sl,
			.grh = {.dgid = b.gid, .sgid_index = a.gid_index, .hop_limit = 64}};
		CHECK(ah = ibv_create_ah(a.pd, &attr));
	}

	int offset = type == IBV_QPT_UD ? 64 - GRH : 64;
	struct ibv_sge from = {(uintptr_t)a.buffer + 64, size, a.mr->lkey};
	struct ibv_sge to = {(uintptr_t)b.buffer + offset, size + 64 - offset, b.mr->lkey};
	for (int i = 0; i < chain; i++) {
		struct ibv_send_wr *w = &send[i];

		w->sg_list = &from;
		w->num_sge = 1;
		w->next = i + 1 < chain ? w + 1 : NULL;
		w->opcode = op->opcode;
		w->send_flags = i + 1 < chain && !op->overflows ? 0 : IBV_SEND_SIGNALED;
		if (type == IBV_QPT_UD) {
			w->wr.ud.ah = ah;
			w->wr.ud.remote_qpn = b.qp->qp_num;
			w->wr.ud.remote_qkey = QKEY;
		} else if (op->fixed) {
			w->wr.atomic.remote_addr = (uintptr_t)b.buffer + 64;
			w->wr.atomic.rkey = b.mr->rkey;
			w->wr.atomic.compare_add = 1;
		} else {
			w->wr.rdma.remote_addr = (uintptr_t)b.buffer + 64;
			/* the low byte of a key distinguishes generations of a memory region */
			w->wr.rdma.rkey = b.mr->rkey ^ (op->denied ? 0x55 : 0);
		}
		receive[i].sg_list = &to;
		receive[i].num_sge = 1;
		receive[i].next = i + 1 < chain ? &receive[i + 1] : NULL;
	}

	unsigned char *source = op->opcode == IBV_WR_RDMA_READ ? b.buffer : a.buffer;
	unsigned char *sink = op->opcode == IBV_WR_RDMA_READ ? a.buffer : b.buffer;
	if (!op->fixed)
		for (int i = 0; i < size; i++)
			source[64 + i] = i * 7 + 1;

	if (op->denied) {
		CHECK(!ibv_post_send(a.qp, send, &bad_send));
		wait_for(&a, 1, IBV_WC_REM_ACCESS_ERR);
		return 0;
	}

	if (op->overflows) {
		struct ibv_async_event event;

		CHECK(!ibv_post_send(a.qp, send, &bad_send));
		CHECK(!ibv_get_async_event(a.context, &event));
		CHECK(event.event_type == IBV_EVENT_CQ_ERR);
		ibv_ack_async_event(&event);
		return 0;
	}

	uint64_t start = 0;
	for (int k = -1; k < batches; k++) { /* the first one warms up */
		if (!k)
			start = now();
		if (op->receives && !op->late)
			post_receives(&b, receive);
		long before = op->late ? refusals(&b) : 0;
		CHECK(!ibv_post_send(a.qp, send, &bad_send));
		if (op->late) {
			while (refusals(&b) == before)
				sched_yield();
			post_receives(&b, receive);
		}
		wait_for(&a, 1, IBV_WC_SUCCESS);
		if (op->receives)
			wait_for(&b, chain, IBV_WC_SUCCESS);
	}
	uint64_t took = now() - start;

	if (!op->fixed && memcmp(a.buffer + 64, b.buffer + 64, size)) {
		fprintf(stderr, "verbs_loop: the payload is not what was sent\n");
		return 1;
	}
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		uint64_t sum;

		memcpy(&sum, sink + 64, sizeof(sum));
		CHECK(sum == (uint64_t)(batches + 1) * chain);
	}
	printf("transport=%s operation=%s size=%d messages=%d ns_per_message=%.1f\n", argv[3],
	       op->name, size, (batches + 1) * chain, (double)took / ((double)batches * chain));

	CHECK(!ibv_destroy_qp(a.qp));
	CHECK(!ibv_destroy_qp(b.qp));
	if (ah)
		CHECK(!ibv_destroy_ah(ah));
	return 0;
}
