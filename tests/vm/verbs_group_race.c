// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads attach a queue pair each to one multicast group and detach it again, so that the group
 * begins and ends all the time. What was attached can be detached, and the queue pair destroyed.
 *
 *   verbs_group_race DEVICE SECONDS EACH
 *
 * Ends after SECONDS and when each thread attached EACH times. Prints how often a queue pair was
 * attached, and how often a detach failed.
 */
#include <pthread.h>
#include <time.h>

#include "verbs_setup.h"

#define THREADS 3

struct member {
	pthread_t thread;
	struct ibv_qp *qp;
	long attached, stuck;
};

static time_t end;
static long each;

static void *run(void *member)
{
	union ibv_gid gid = {.raw = {0xff, 0x0e, [10] = 0xff, [11] = 0xff, 239, 1, 1, 9}};
	struct member *m = member;

	while (time(NULL) < end || m->attached < each) {
		CHECK(!ibv_attach_mcast(m->qp, &gid, 0));
		m->attached++;
		if (ibv_detach_mcast(m->qp, &gid, 0))
			m->stuck++;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct member members[THREADS];
	long attached = 0, stuck = 0;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	if (argc != 4) {
		fprintf(stderr, "usage: verbs_group_race DEVICE SECONDS EACH\n");
		return 2;
	}
	context = open_device(argv[1]);
	CHECK(pd = ibv_alloc_pd(context));
	CHECK(cq = ibv_create_cq(context, 16, NULL, NULL, 0));
	for (int i = 0; i < THREADS; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = cq,
			.recv_cq = cq,
			.qp_type = IBV_QPT_UD,
			.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1}};

		CHECK(members[i].qp = ibv_create_qp(pd, &init));
		CHECK(!to_init(members[i].qp, IBV_QPT_UD));
	}
	each = atol(argv[3]);
	end = time(NULL) + atoi(argv[2]);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&members[i].thread, NULL, run, &members[i]));
	for (int i = 0; i < THREADS; i++) {
		pthread_join(members[i].thread, NULL);
		attached += members[i].attached;
		stuck += members[i].stuck || ibv_destroy_qp(members[i].qp);
	}
	printf("attached=%ld stuck=%ld\n", attached, stuck);
	return 0;
}
