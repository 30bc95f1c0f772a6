// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queue pairs to be attacked: RC, UC and UD over RoCE v1 and v2, with posted receives, keys that
 * allow everything, and unanswered requests. A queue pair in the error state is connected again,
 * with PSN 0.
 *
 *   verbs_target DEVICE PEER_IPV4 [NUMBERS]
 *
 * Prints one line: its address, its key, and the numbers of the queue pairs: "VERSION TYPE NUMBER".
 * Then "ready", and runs until it is killed.
 *
 * With NUMBERS it destroys queue pairs at random and makes others in their places, and moves them
 * through their states. That file has the number of the queue pair of each place, as uint32_t; on
 * SIGINT the program prints "made=…", how many there were, and ends.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_setup.h"

#define MEMORY	 (1 << 20)
#define RECEIVES 32
#define MESSAGE	 4200
#define EACH	 4 /* queue pairs of a type and version */
#define COUNT	 (2 * 3 * EACH)
#define PLACES	 64 /* of the file */

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
static const char *const names[] = {"rc", "uc", "ud"};

struct target {
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	int gid_index;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static unsigned char *memory;
static union ibv_gid peer;
static volatile uint32_t *numbers;
static long made;
static volatile sig_atomic_t ended;

static void post_receive(struct target *t)
{
	struct ibv_sge sge = {(uintptr_t)memory, MESSAGE, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)t, .sg_list = &sge, .num_sge = 1}, *bad;

	ibv_post_recv(t->qp, &wr, &bad); /* it may have gone to the error state meanwhile */
}

/* requests that wait for answers, for forged answers to act on */
static void post_requests(struct target *t)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
						     IBV_WR_RDMA_WRITE, IBV_WR_SEND};

	for (int i = 0; i < 4; i++) {
		struct ibv_sge sge = {(uintptr_t)memory + 65536, i == 1 ? 8 : 5000, mr->lkey};
		struct ibv_send_wr wr = {.wr_id = (uintptr_t)t,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = opcodes[i],
					 .send_flags = IBV_SEND_SIGNALED},
				   *bad;

		if (i == 1) {
			wr.wr.atomic.remote_addr = (uintptr_t)memory;
			wr.wr.atomic.rkey = mr->rkey;
		} else {
			wr.wr.rdma.remote_addr = (uintptr_t)memory;
			wr.wr.rdma.rkey = mr->rkey;
		}
		ibv_post_send(t->qp, &wr, &bad);
	}
}

/* an arriving packet may break it at any step: then it is tried again */
static void connect_target(struct target *t)
{
	struct connection c = {.type = t->type,
			       .dest_qp_num = 17,
			       .dgid = peer,
			       .sgid_index = t->gid_index,
			       .path_mtu = IBV_MTU_1024,
			       .min_rnr_timer = 12,
			       .timeout = 16,
			       .retry_cnt = 7,
			       .rnr_retry = 7};

	if (to_reset(t->qp) || to_init(t->qp, t->type))
		return;
	for (int i = 0; i < RECEIVES; i++)
		post_receive(t);
	if (!to_rts(t->qp, &c) && t->type == IBV_QPT_RC)
		post_requests(t);
}

static void make_target(struct target *t, int place)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = t->type,
		.cap = {.max_send_wr = 8,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	CHECK(t->qp = ibv_create_qp(pd, &init));
	made++;
	if (numbers)
		numbers[place] = t->qp->qp_num;
	connect_target(t);
}

/* the next round connects it again */
static void disturb(struct target *t, int place)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_ERR, IBV_QPS_RESET, IBV_QPS_SQD};
	struct ibv_qp_attr a = {.qp_state = states[rand() % 3]};

	if (rand() % 2) {
		CHECK(!ibv_destroy_qp(t->qp));
		make_target(t, place);
	} else {
		ibv_modify_qp(t->qp, &a, IBV_QP_STATE);
	}
}

static void map_numbers(const char *name)
{
	int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	size_t size = PLACES * sizeof(*numbers);

	CHECK(file >= 0 && !ftruncate(file, size));
	numbers = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(numbers != MAP_FAILED);
}

static void end(int number)
{
	(void)number;
	ended = 1;
}

int main(int argc, char **argv)
{
	static struct target targets[COUNT];
	int n;

	CHECK(argc == 3 || argc == 4);
	if (argc == 4) {
		map_numbers(argv[3]);
		signal(SIGINT, end);
	}
	peer.raw[10] = peer.raw[11] = 0xff;
	CHECK(inet_pton(AF_INET, argv[2], peer.raw + 12) == 1);
	context = open_device(argv[1]);
	CHECK(pd = ibv_alloc_pd(context));
	CHECK(cq = ibv_create_cq(context, 4096, NULL, NULL, 0));
	CHECK(!posix_memalign((void **)&memory, 4096, MEMORY));
	CHECK(mr = ibv_reg_mr(pd, memory, MEMORY, IBV_ACCESS_LOCAL_WRITE | ALL_ACCESS));

	printf("%llu %u\n", (unsigned long long)(uintptr_t)memory, mr->rkey);
	for (int i = 0; i < COUNT; i++) {
		struct target *t = &targets[i];
		int version = 1 + i / (3 * EACH);

		t->type = types[i / EACH % 3];
		t->gid_index = find_gid(context, version, 1).gid_index;
		make_target(t, i);
		printf("v%d %s %u\n", version, names[i / EACH % 3], t->qp->qp_num);
	}
	printf("ready\n");
	fflush(stdout);

	while (!ended) {
		struct ibv_qp_attr a;
		struct ibv_qp_init_attr init;
		struct ibv_wc wc[32];

		while ((n = ibv_poll_cq(cq, 32, wc)) > 0)
			for (int i = 0; i < n; i++)
				if (wc[i].status == IBV_WC_SUCCESS && wc[i].opcode & IBV_WC_RECV)
					post_receive((struct target *)(uintptr_t)wc[i].wr_id);
		for (int i = 0; i < COUNT; i++)
			if (!ibv_query_qp(targets[i].qp, &a, IBV_QP_STATE, &init) &&
			    a.qp_state != IBV_QPS_RTS)
				connect_target(&targets[i]);
		if (numbers) {
			int place = rand() % COUNT;

			disturb(&targets[place], place);
		}
		usleep(2000);
	}
	printf("made=%ld\n", made);
	return 0;
}
