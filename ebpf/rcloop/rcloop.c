// SPDX-License-Identifier: GPL-2.0-only
/*
 * rcloop FROM TO SIZE BATCHES [EVENT]
 *
 * RDMA WRITEs between two devices of one machine, over two RC queue pairs of one process: the load
 * under which instructions are counted (QEMU -icount).
 *
 * Nothing polls, so the driver's work queue gets the processor whenever there is work. A batch
 * starts only if it fits before the next timer tick, so no packet contains the tick's work (0.1 %
 * of all instructions). After a tick, a datagram in each direction precedes the first batch: the
 * first IP ID to a destination in a tick takes a random number, and the kernel generates two dozen
 * of those at once, which would be in the stage `net` of one packet. Prints one line of key=value:
 * ns for each WRITE and its ACK, over the batches, and the same in cycles of all processors if they
 * count any (lib/event_counter.h). EVENT counts something else instead: "cpu-clock", in ns, works
 * on every machine.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "event_counter.h"
#include "msg.h"

#define MAX_CHAIN 63 /* work requests a batch: 63 * 35,000 instructions, a tick is 4,000,000 */
#define ROOM_BEHIND_TICK 1200000 /* ns */
#define WARM_UP		 8
#define MAX_SIZE	 65536
#define MAX_BATCHES	 100000
#define TIMEOUT		 18 /* 4.096 us * 2^18, a second */

#define CHECK(what)                                                                        \
	do {                                                                               \
		if (!(what)) {                                                             \
			msg_error(EXIT_RUN, NULL, NULL, "%s: %s", #what, strerror(errno)); \
			exit(EXIT_RUN);                                                    \
		}                                                                          \
	} while (0)

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	int gid_index;
	int udp; /* bound to the address of the GID */
	struct sockaddr_in address;
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	CHECK(list);
	for (int i = 0; list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!context) {
		msg_error(EXIT_MISSING, "the link was not made", "rdma link", "no device %s", name);
		exit(EXIT_MISSING);
	}
	return context;
}

/* by type and address: RoCE v2 on IPv4 */
static void choose_gid(struct end *end)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct ibv_gid_entry entry;

	for (int i = 0; !ibv_query_gid_ex(end->context, 1, i, &entry, 0); i++) {
		if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(entry.gid.raw, mapped, sizeof(mapped))) {
			end->gid = entry.gid;
			end->gid_index = i;
			return;
		}
	}
	msg_error(EXIT_MISSING, "its interface has no IPv4 address", NULL, "no RoCE v2 GID");
	exit(EXIT_MISSING);
}

static void open_udp(struct end *end)
{
	socklen_t size = sizeof(end->address);
	/* datagrams that may be fragmented: others need no ID */
	int may = IP_PMTUDISC_DONT;

	end->address.sin_family = AF_INET;
	memcpy(&end->address.sin_addr, end->gid.raw + 12, 4);
	CHECK((end->udp = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
	CHECK(!setsockopt(end->udp, IPPROTO_IP, IP_MTU_DISCOVER, &may, sizeof(may)));
	CHECK(!bind(end->udp, (struct sockaddr *)&end->address, sizeof(end->address)));
	CHECK(!getsockname(end->udp, (struct sockaddr *)&end->address, &size));
}

static void send_datagram(const struct end *from, const struct end *to)
{
	char byte = 0;

	CHECK(sendto(from->udp, &byte, 1, 0, (const struct sockaddr *)&to->address,
		     sizeof(to->address)) == 1);
	CHECK(recv(to->udp, &byte, 1, 0) == 1);
}

static void make(struct end *end, const char *device)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = MAX_CHAIN,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	void *buffer;

	end->context = open_device(device);
	choose_gid(end);
	open_udp(end);
	CHECK(end->pd = ibv_alloc_pd(end->context));
	CHECK(end->channel = ibv_create_comp_channel(end->context));
	CHECK(end->cq = ibv_create_cq(end->context, MAX_CHAIN, NULL, end->channel, 0));
	CHECK(!posix_memalign(&buffer, 4096, MAX_SIZE));
	memset(buffer, 1, MAX_SIZE);
	CHECK(end->mr = ibv_reg_mr(end->pd, buffer, MAX_SIZE,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	init.send_cq = init.recv_cq = end->cq;
	CHECK(end->qp = ibv_create_qp(end->pd, &init));
}

static void join(struct end *end, const struct end *peer)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid,
				    .sgid_index = end->gid_index,
				    .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = TIMEOUT,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1};

	CHECK(!ibv_query_port(end->context, 1, &port));
	rtr.path_mtu = port.active_mtu;
	CHECK(!ibv_modify_qp(end->qp, &init,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	CHECK(!ibv_modify_qp(end->qp, &rtr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	CHECK(!ibv_modify_qp(end->qp, &rts,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

/*
 * Work requests in the next batch, 2 to MAX_CHAIN: odd numbers and even, the same ones in each run.
 * With one number for all, each batch would meet the slabs of its socket buffers in the same state,
 * and that state is another after each boot.
 */
static int next_chain(void)
{
	static uint32_t state = 1;

	state = state * 1664525 + 1013904223; /* Numerical Recipes' generator */
	return 2 + (state >> 16) % (MAX_CHAIN - 1);
}

/* the driver works on more than one processor */
static struct event_counter counter;

static void open_counter(const char *event)
{
	if (!event_is_known(event)) {
		msg_error(EXIT_USAGE, NULL, EVENT_NAMES, "no event %s", event);
		exit(EXIT_USAGE);
	}
	event_counter_open(&counter, event, false);
}

/*
 * Returns when a batch fits before the next tick: at once, or after that tick. This clock moves
 * with the tick.
 */
static void wait_for_room(const struct end *from, const struct end *to)
{
	uint64_t tick = clock_now(CLOCK_MONOTONIC_COARSE);

	if (clock_now(CLOCK_MONOTONIC) - tick < ROOM_BEHIND_TICK)
		return;
	while (clock_now(CLOCK_MONOTONIC_COARSE) == tick)
		;
	send_datagram(from, to);
	send_datagram(to, from);
}

struct cost {
	double ns, events;
};

/* one batch; what it costs from its post to its completion, for each request */
static struct cost batch(struct end *from, struct end *to, struct ibv_send_wr *requests)
{
	int chain = next_chain();
	struct ibv_send_wr *bad;
	struct ibv_cq *cq;
	struct ibv_wc done;
	void *context;
	struct event_count count;
	uint64_t start, took;

	/* the last ones of the array */
	requests += MAX_CHAIN - chain;
	CHECK(!ibv_req_notify_cq(from->cq, 0));
	wait_for_room(from, to);
	event_counter_read(&counter, &count);
	start = clock_now(CLOCK_MONOTONIC);
	CHECK(!ibv_post_send(from->qp, requests, &bad));
	CHECK(!ibv_get_cq_event(from->channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	CHECK(ibv_poll_cq(from->cq, 1, &done) == 1);
	if (done.status != IBV_WC_SUCCESS) {
		msg_error(EXIT_RUN, NULL, NULL, "a WRITE failed: %s",
			  ibv_wc_status_str(done.status));
		exit(EXIT_RUN);
	}
	took = clock_now(CLOCK_MONOTONIC) - start;
	CHECK(event_counter_read(&counter, &count) || !counter.processors);
	return (struct cost){(double)took / chain, count.value / chain};
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static struct ibv_send_wr requests[MAX_CHAIN];
	static double took[MAX_BATCHES], counted[MAX_BATCHES];
	struct end from = {}, to = {};
	struct ibv_sge bytes;
	const char *event;
	long size, batches;

	msg_program = "rcloop";
	size = argc == 5 || argc == 6 ? atol(argv[3]) : 0;
	batches = argc == 5 || argc == 6 ? atol(argv[4]) : 0;
	if (size < 1 || size > MAX_SIZE || batches < 1 || batches > MAX_BATCHES) {
		fprintf(stderr, "usage: rcloop FROM TO SIZE BATCHES [EVENT]\n");
		return EXIT_USAGE;
	}
	event = argv[5] ?: EVENT_CYCLES;
	open_counter(event);
	make(&from, argv[1]);
	make(&to, argv[2]);
	join(&from, &to);
	join(&to, &from);
	bytes = (struct ibv_sge){(uintptr_t)from.mr->addr, size, from.mr->lkey};
	for (int i = 0; i < MAX_CHAIN; i++)
		requests[i] = (struct ibv_send_wr){
			.sg_list = &bytes,
			.num_sge = 1,
			.next = i + 1 < MAX_CHAIN ? &requests[i + 1] : NULL,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = i + 1 < MAX_CHAIN ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)to.mr->addr, to.mr->rkey},
		};
	for (long i = 0; i < WARM_UP; i++)
		batch(&from, &to, requests);
	for (long i = 0; i < batches; i++) {
		struct cost cost = batch(&from, &to, requests);

		took[i] = cost.ns;
		counted[i] = cost.events;
	}
	qsort(took, batches, sizeof(*took), ascending);
	qsort(counted, batches, sizeof(*counted), ascending);
	printf("size=%ld batches=%ld min_ns=%.2f median_ns=%.2f max_ns=%.2f", size, batches,
	       took[0], took[batches / 2], took[batches - 1]);
	if (counter.processors)
		printf(" median_%s=%.2f", event, counted[batches / 2]);
	printf("\n");
	return 0;
}
