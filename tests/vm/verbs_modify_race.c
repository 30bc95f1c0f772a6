// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads modify one queue pair at the same time: its state, and its max_dest_rd_atomic alone,
 * which 6.1 refuses.
 *
 *   verbs_modify_race DEVICE SECONDS
 *
 * Prints how often that was changed, the queue pair reset, and connected.
 */
#include <pthread.h>
#include <time.h>

#include "verbs_setup.h"

#define THREADS 3

struct caller {
	pthread_t thread;
	int number;
	long changed, reset, connected;
};

static struct ibv_qp *qp;
static struct connection to_itself;
static time_t end;

static void *run(void *caller)
{
	struct caller *c = caller;

	/* another thread may have moved it to a state that permits none of these */
	for (int i = c->number; time(NULL) < end; i++) {
		struct ibv_qp_attr a = {.max_dest_rd_atomic = 1 + i % 16};

		c->changed += !ibv_modify_qp(qp, &a, IBV_QP_MAX_DEST_RD_ATOMIC);
		c->connected += !to_init(qp, IBV_QPT_RC) && !to_rts(qp, &to_itself);
		c->reset += !to_reset(qp);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct caller callers[THREADS];
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	long changed = 0, reset = 0, connected = 0;
	struct ibv_context *context;
	struct ibv_gid_entry gid;
	struct ibv_pd *pd;

	if (argc != 3) {
		fprintf(stderr, "usage: verbs_modify_race DEVICE SECONDS\n");
		return 2;
	}
	context = open_device(argv[1]);
	CHECK(pd = ibv_alloc_pd(context));
	CHECK(init.send_cq = init.recv_cq = ibv_create_cq(context, 16, NULL, NULL, 0));
	CHECK(qp = ibv_create_qp(pd, &init));
	gid = find_gid(context, 2, 1);
	to_itself = (struct connection){.type = IBV_QPT_RC,
					.dest_qp_num = qp->qp_num,
					.dgid = gid.gid,
					.sgid_index = gid.gid_index,
					.path_mtu = IBV_MTU_1024};
	end = time(NULL) + atoi(argv[2]);
	for (int i = 0; i < THREADS; i++) {
		callers[i].number = i;
		CHECK(!pthread_create(&callers[i].thread, NULL, run, &callers[i]));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(callers[i].thread, NULL);
		changed += callers[i].changed;
		reset += callers[i].reset;
		connected += callers[i].connected;
	}
	CHECK(!ibv_destroy_qp(qp));
	printf("changed=%ld reset=%ld connected=%ld\n", changed, reset, connected);
	return 0;
}
