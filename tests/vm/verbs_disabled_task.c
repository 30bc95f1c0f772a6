// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages that arrive while the driver does not let the tasks of their queue pair run: during a
 * change of max_dest_rd_atomic, and during a reset.
 *
 *   verbs_disabled_task DEVICE SECONDS ARRIVED RESET
 *
 * One UC queue pair sends to another over RoCE v2 on DEVICE. Half of the time, and until ARRIVED
 * messages did, the receiver is changed; half of the time, and RESET times, it is reset and
 * destroyed. Prints how many messages arrived, how many did not within LATE seconds, how often the
 * receiver was reset, and how often it could not be destroyed within LATE seconds.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "verbs_setup.h"

#define LENGTH 4096
#define DEPTH  64
/* a packet that stays keeps a queue pair for 50 s */
#define LATE 40
/* what is late takes a minute each time */
#define ENOUGH 2

static struct ibv_context *context;
static struct ibv_gid_entry gid;
static struct ibv_pd *pd;
static struct ibv_cq *sent, *received;
static struct ibv_mr *mr;
static struct ibv_qp *sender, *receiver;
static unsigned char memory[LENGTH];
static atomic_int going;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr init = {.send_cq = sent,
					.recv_cq = received,
					.qp_type = IBV_QPT_UC,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = DEPTH,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_qp *qp;

	CHECK(qp = ibv_create_qp(pd, &init));
	CHECK(!to_init(qp, IBV_QPT_UC));
	return qp;
}

static void connect_to(struct ibv_qp *qp, const struct ibv_qp *other)
{
	struct connection c = {.type = IBV_QPT_UC,
			       .dest_qp_num = other->qp_num,
			       .dgid = gid.gid,
			       .sgid_index = gid.gid_index,
			       .path_mtu = IBV_MTU_4096};

	CHECK(!to_rts(qp, &c));
}

static void make_ends(void)
{
	sender = make_qp();
	receiver = make_qp();
	connect_to(receiver, sender);
	connect_to(sender, receiver);
}

static void post_receive(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, LENGTH, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(receiver, &wr, &bad));
}

static int post_send(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, LENGTH, mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	return ibv_post_send(sender, &wr, &bad);
}

static void start(pthread_t *thread, void *(*what)(void *))
{
	going = 1;
	CHECK(!pthread_create(thread, NULL, what, NULL));
}

static void stop(pthread_t thread)
{
	going = 0;
	pthread_join(thread, NULL);
}

static void *change(void *unused)
{
	struct ibv_qp_attr a = {0};

	while (going) {
		a.max_dest_rd_atomic = 1 + a.max_dest_rd_atomic % 16;
		CHECK(!ibv_modify_qp(receiver, &a, IBV_QP_MAX_DEST_RD_ATOMIC));
	}
	return NULL;
}

static void *keep_sending(void *unused)
{
	struct ibv_wc wc;

	while (going) {
		while (!post_send())
			;
		while (ibv_poll_cq(sent, 1, &wc) > 0)
			;
	}
	return NULL;
}

static void changes(double end, long least)
{
	long arrived = 0, late = 0;
	pthread_t changer;
	struct ibv_wc wc;

	make_ends();
	start(&changer, change);
	while ((now() < end || arrived < least) && late < ENOUGH) {
		double limit = now() + LATE;
		int n;

		/* one that follows wakes one that is late */
		post_receive();
		CHECK(!post_send());
		while (!(n = ibv_poll_cq(received, 1, &wc)) && now() < limit)
			;
		CHECK(n >= 0);
		if (n)
			arrived++;
		else
			late++;
		while (ibv_poll_cq(sent, 1, &wc) > 0)
			;
	}
	stop(changer);
	CHECK(!ibv_destroy_qp(sender));
	CHECK(!ibv_destroy_qp(receiver));
	printf("arrived=%ld late=%ld", arrived, late);
}

static void resets(double end, long least)
{
	long reset = 0, stuck = 0;
	pthread_t thread;
	struct ibv_wc wc;
	double begin;

	while ((now() < end || reset < least) && stuck < ENOUGH) {
		make_ends();
		start(&thread, keep_sending);
		while (!ibv_poll_cq(sent, 1, &wc))
			;
		CHECK(!to_reset(receiver));
		stop(thread);
		begin = now();
		CHECK(!ibv_destroy_qp(receiver));
		CHECK(!ibv_destroy_qp(sender));
		while (ibv_poll_cq(sent, 1, &wc) > 0 || ibv_poll_cq(received, 1, &wc) > 0)
			;
		reset++;
		stuck += now() - begin > LATE;
	}
	printf(" reset=%ld stuck=%ld\n", reset, stuck);
}

int main(int argc, char **argv)
{
	double half;

	if (argc != 5) {
		fprintf(stderr, "usage: verbs_disabled_task DEVICE SECONDS ARRIVED RESET\n");
		return 2;
	}
	context = open_device(argv[1]);
	gid = find_gid(context, 2, 1);
	CHECK(pd = ibv_alloc_pd(context));
	CHECK(sent = ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0));
	CHECK(received = ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0));
	CHECK(mr = ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE));
	half = atof(argv[2]) / 2;
	changes(now() + half, atol(argv[3]));
	resets(now() + half, atol(argv[4]));
	return 0;
}
