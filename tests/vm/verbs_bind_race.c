// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A memory window is bound to a memory region while another thread deregisters that: one of the two
 * must fail.
 *
 *   verbs_bind_race DEVICE SECONDS EACH
 *
 * The start of the deregistration is moved until both are as likely to come first. Ends after
 * SECONDS and when each came first EACH times. Prints how often each did; exits with 1 if both
 * succeeded.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "verbs_setup.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static unsigned char memory[4096];

/* the other thread deregisters mr in each round that begins, and says what came of it */
static struct ibv_mr *mr;
static atomic_int begun, ended;
static int refused;
static int delay; /* turns of a loop, of this thread if positive, else of the main thread */

static void turn(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		;
}

static void *deregister(void *unused)
{
	(void)unused;
	for (int round = 1;; round++) {
		while (atomic_load(&begun) < round)
			sched_yield();
		turn(delay);
		refused = ibv_dereg_mr(mr);
		atomic_store(&ended, round);
	}
	return NULL;
}

/* the queue pair is its own peer: nothing is sent */
static void connect_qp(void)
{
	struct connection c = {
		.type = IBV_QPT_RC, .dest_qp_num = qp->qp_num, .path_mtu = IBV_MTU_1024};

	CHECK(!ibv_query_gid(context, 1, 0, &c.dgid));
	CHECK(!to_reset(qp));
	CHECK(!to_init(qp, c.type));
	CHECK(!to_rts(qp, &c));
}

static enum ibv_wc_status completion(void)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		sched_yield();
	CHECK(n == 1);
	return wc.status;
}

static void post_bind(struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info.mr = mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)memory;
	wr.bind_mw.bind_info.length = sizeof(memory);
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void invalidate(uint32_t rkey)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.invalidate_rkey = rkey;
	CHECK(!ibv_post_send(qp, &wr, &bad));
	CHECK(completion() == IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 4, .max_recv_wr = 1}};
	unsigned long bound = 0, deregistered = 0, each;
	struct ibv_mw *mw;
	pthread_t thread;
	time_t end;

	if (argc != 4) {
		fprintf(stderr, "usage: verbs_bind_race DEVICE SECONDS EACH\n");
		return 2;
	}
	context = open_device(argv[1]);
	CHECK(pd = ibv_alloc_pd(context));
	CHECK(cq = ibv_create_cq(context, 4, NULL, NULL, 0));
	init.send_cq = init.recv_cq = cq;
	CHECK(qp = ibv_create_qp(pd, &init));
	CHECK(mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2));
	connect_qp();
	CHECK(!pthread_create(&thread, NULL, deregister, NULL));

	each = atol(argv[3]);
	end = time(NULL) + atoi(argv[2]);
	for (int round = 1; time(NULL) < end || bound < each || deregistered < each; round++) {
		uint32_t rkey = ibv_inc_rkey(mw->rkey);
		struct ibv_mr *registered;
		enum ibv_wc_status status;

		CHECK(registered = mr = ibv_reg_mr(pd, memory, sizeof(memory), ACCESS));
		atomic_store(&begun, round);
		turn(-delay);
		post_bind(mw, rkey);
		status = completion();
		while (atomic_load(&ended) < round)
			sched_yield();
		if (status == IBV_WC_SUCCESS) {
			if (!refused) {
				printf("bound to a region that was deregistered\n");
				return 1;
			}
			bound++;
			delay -= abs(delay) / 8 + 16;
			mw->rkey = rkey; /* the next binding names it */
			invalidate(rkey);
			CHECK(!ibv_dereg_mr(registered));
		} else {
			CHECK(!refused);
			deregistered++;
			delay += abs(delay) / 8 + 16;
			connect_qp();
		}
	}
	printf("bound=%lu deregistered=%lu\n", bound, deregistered);
	return 0;
}
