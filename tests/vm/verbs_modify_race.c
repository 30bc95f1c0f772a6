// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads modify one queue pair at the same time: its state, and its max_dest_rd_atomic alone,
 * which 6.1 refuses.
 *
 *   verbs_modify_race DEVICE SECONDS CHANGED OTHERS
 *
 * They run for SECONDS, and until that was changed CHANGED times, and the queue pair reset and
 * connected OTHERS times. Prints how often each was done.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "verbs_setup.h"

#define THREADS 3

static struct ibv_qp *qp;
static struct connection to_itself;
static time_t end;
static long min_changed, min_others;
static atomic_long changed, reset, connected;

static int goes_on(void)
{
	return time(NULL) < end || changed < min_changed || reset < min_others ||
	       connected < min_others;
}

static void *run(void *number)
{
	/* another thread may have moved it to a state that permits none of these */
	for (int i = *(int *)number; goes_on(); i++) {
		struct ibv_qp_attr a = {.max_dest_rd_atomic = 1 + i % 16};

		changed += !ibv_modify_qp(qp, &a, IBV_QP_MAX_DEST_RD_ATOMIC);
		connected += !to_init(qp, IBV_QPT_RC) && !to_rts(qp, &to_itself);
		reset += !to_reset(qp);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static int numbers[THREADS];
	pthread_t threads[THREADS];
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_context *context;
	struct ibv_gid_entry gid;
	struct ibv_pd *pd;

	if (argc != 5) {
		fprintf(stderr, "usage: verbs_modify_race DEVICE SECONDS CHANGED OTHERS\n");
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
	min_changed = atol(argv[3]);
	min_others = atol(argv[4]);
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		CHECK(!pthread_create(&threads[i], NULL, run, &numbers[i]));
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(!ibv_destroy_qp(qp));
	printf("changed=%ld reset=%ld connected=%ld\n", changed, reset, connected);
	return 0;
}
