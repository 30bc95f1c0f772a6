// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A hostile local user: calls that make, change and end objects, with strange arguments, in any
 * order, while the queue pairs have traffic.
 *
 *   verbs_control DEVICE SECONDS SEED [REFUSED]
 *
 * Each of the threads has its own objects, over RoCE v2 on DEVICE. Ends after SECONDS and, with
 * REFUSED, when each kind of call was done, except those in this list ("advise,reregister", ""); or
 * AFTER seconds after a SIGTERM. Prints for each kind of call "kind=done/refused".
 */
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "verbs_setup.h"

#define THREADS	    3
#define MEMORY	    (64 * 4096)
#define REGIONS	    6
#define QPS	    4
#define GROUPS	    3
#define COMPLETIONS 256
#define RECEIVES    32
#define AFTER	    3

/* what a provider calls; that of rxe offers it to nobody, but the kernel does */
int ibv_cmd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		      struct ibv_sge *list, uint32_t number);

enum call {
	REGISTER,
	REGISTER_ODP,
	REREGISTER,
	DEREGISTER,
	ADVISE,
	RESIZE_CQ,
	MODIFY_SRQ,
	MODIFY_QP,
	CONNECT,
	RENEW_QP,
	ATTACH,
	DETACH,
	SEND,
	RECEIVE,
	POLL,
	CALLS
};

static const char *const names[CALLS] = {
	"register",  "register_odp", "reregister", "deregister", "advise",
	"resize_cq", "modify_srq",   "modify_qp",  "connect",	 "renew_qp",
	"attach",    "detach",	     "send",	   "receive",	 "poll",
};

struct user {
	pthread_t thread;
	uint64_t state;
	struct ibv_context *context;
	struct ibv_gid_entry gid;
	struct ibv_pd *pd[2];
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[QPS];
	struct ibv_mr *mr[REGIONS];
	int odp[REGIONS];
	unsigned char *memory;
	long refused[CALLS];
};

static const enum ibv_qp_type types[QPS] = {IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
static atomic_long done[CALLS];
static int wanted[CALLS];
static volatile sig_atomic_t over, told;

/* splitmix64 */
static uint64_t draw(struct user *u)
{
	uint64_t z = u->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static uint32_t below(struct user *u, uint32_t n)
{
	return draw(u) % n;
}

static uint64_t strange(struct user *u)
{
	static const uint64_t values[] = {
		0,	    1,		7,	     4095,	 4096,	     0x7fffffff,
		0x80000000, 0xffffffff, 0x100000000, 1ull << 43, 1ull << 63, ~0ull - 4095,
	};

	return below(u, 3) ? values[below(u, sizeof(values) / sizeof(*values))] : draw(u);
}

/* a place in our memory: what a peer writes may go nowhere else */
static size_t place(struct user *u, size_t *length)
{
	size_t at = below(u, MEMORY);

	*length = 1 + below(u, MEMORY - at);
	return at;
}

static int access_flags(struct user *u)
{
	int flags = below(u, 64);

	return below(u, 2) ? flags : ALL_ACCESS | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
}

static struct ibv_mr **region(struct user *u)
{
	return &u->mr[below(u, REGIONS)];
}

static int register_region(struct user *u, int odp)
{
	struct ibv_mr **mr = region(u);
	size_t length, at = place(u, &length);
	uint64_t iova = (uintptr_t)u->memory + at;

	if (*mr)
		return -1;
	if (below(u, 2))
		iova = below(u, 2) ? strange(u) : iova + strange(u);
	*mr = ibv_reg_mr_iova(u->pd[below(u, 2)], u->memory + at, length, iova,
			      access_flags(u) | (odp ? IBV_ACCESS_ON_DEMAND : 0));
	if (!*mr)
		return -1;
	/* what requests name, for part() */
	(*mr)->addr = (void *)(uintptr_t)iova;
	u->odp[mr - u->mr] = odp;
	return 0;
}

/* the provider of rxe offers it to nobody, but the kernel does */
static int reregister(struct user *u)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_rereg_mr body;
	} command = {.header = {.command = IB_USER_VERBS_CMD_REREG_MR}};
	struct ib_uverbs_rereg_mr_resp response;
	struct ibv_mr *mr = *region(u);
	size_t length, at = place(u, &length);

	if (!mr)
		return -1;
	command.header.in_words = sizeof(command) / 4;
	command.header.out_words = sizeof(response) / 4;
	command.body.response = (uintptr_t)&response;
	command.body.mr_handle = mr->handle;
	command.body.flags = below(u, 8);
	command.body.start = (uintptr_t)u->memory + at;
	command.body.length = length;
	command.body.hca_va = command.body.start + (below(u, 2) ? 0 : strange(u));
	command.body.pd_handle = u->pd[below(u, 2)]->handle;
	command.body.access_flags = access_flags(u);
	if (write(u->context->cmd_fd, &command, sizeof(command)) < 0)
		return -1;
	mr->lkey = response.lkey;
	mr->rkey = response.rkey;
	if (command.body.flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = (void *)(uintptr_t)command.body.hca_va;
		mr->length = length;
	}
	return 0;
}

static int deregister(struct user *u)
{
	struct ibv_mr **mr = region(u);

	if (!*mr || ibv_dereg_mr(*mr))
		return -1;
	*mr = NULL;
	return 0;
}

static struct ibv_sge part(struct user *u)
{
	struct ibv_mr *mr = *region(u);
	struct ibv_sge sge = {.addr = (uintptr_t)u->memory, .length = below(u, 9000)};

	if (mr) {
		sge.lkey = mr->lkey;
		sge.addr = (uintptr_t)mr->addr + below(u, mr->length);
	}
	switch (below(u, 8)) {
	case 0:
		sge.addr = strange(u);
		break;
	case 1:
		sge.length = strange(u);
		break;
	case 2:
		sge.lkey = strange(u);
		break;
	default:
		break;
	}
	return sge;
}

static int advise(struct user *u)
{
	struct ibv_sge list[3] = {part(u), part(u), part(u)};
	int i = below(u, REGIONS);

	/* as it should be, which chance seldom makes it */
	if (u->mr[i] && u->odp[i]) {
		list[0] = (struct ibv_sge){.addr = (uintptr_t)u->mr[i]->addr,
					   .length = u->mr[i]->length,
					   .lkey = u->mr[i]->lkey};
		return ibv_cmd_advise_mr(u->mr[i]->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, list, 1);
	}
	return ibv_cmd_advise_mr(u->pd[below(u, 2)], below(u, 4), below(u, 3), list,
				 1 + below(u, 3));
}

static int modify_srq(struct user *u)
{
	struct ibv_srq_attr a = {.max_wr = below(u, 2) ? 1 + below(u, 1024) : RECEIVES,
				 .srq_limit = below(u, 2) ? strange(u) : below(u, 8)};

	return ibv_modify_srq(u->srq, &a, below(u, 4));
}

/* any attributes, in any state */
static int modify_qp(struct user *u)
{
	struct ibv_qp *qp = u->qp[below(u, QPS)];
	struct ibv_qp_attr a;

	for (size_t i = 0; i < sizeof(a) / sizeof(uint32_t); i++) {
		uint32_t value = below(u, 2) ? below(u, 8) : strange(u);

		memcpy((char *)&a + 4 * i, &value, sizeof(value));
	}
	a.qp_state = below(u, 7);
	a.cur_qp_state = qp->state;
	a.port_num = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.is_global = 1;
	if (below(u, 2)) {
		a.ah_attr.grh.dgid = u->gid.gid;
		a.ah_attr.grh.sgid_index = u->gid.gid_index;
	}
	return ibv_modify_qp(qp, &a, draw(u) & draw(u) & 0x1ffffff);
}

static int connect_qp(struct user *u)
{
	int i = below(u, QPS);
	struct ibv_qp *qp = u->qp[i];
	/* the two of RC with each other, the others with themselves */
	struct connection c = {.type = types[i],
			       .dest_qp_num = u->qp[i < 2 ? !i : i]->qp_num,
			       .rq_psn = i < 2 ? 0 : below(u, 1 << 24),
			       .sq_psn = i < 2 ? 0 : below(u, 1 << 24),
			       .dgid = u->gid.gid,
			       .sgid_index = u->gid.gid_index,
			       .path_mtu = 1 + below(u, 5),
			       .min_rnr_timer = 1,
			       .timeout = 8,
			       .retry_cnt = 2,
			       .rnr_retry = 2};

	return to_reset(qp) || to_init(qp, c.type) || to_rts(qp, &c);
}

static struct ibv_qp *make_qp(struct user *u, int i)
{
	struct ibv_qp_init_attr init = {.send_cq = u->cq,
					.recv_cq = u->cq,
					.srq = i == 1 ? u->srq : NULL,
					.qp_type = types[i],
					.cap = {.max_send_wr = 1 + below(u, 64),
						.max_recv_wr = 1 + below(u, 64),
						.max_send_sge = 2,
						.max_recv_sge = 2,
						.max_inline_data = below(u, 128)}};

	return ibv_create_qp(u->pd[below(u, 2)], &init);
}

static int renew_qp(struct user *u)
{
	int i = below(u, QPS);
	struct ibv_qp *qp = make_qp(u, i);

	if (!qp)
		return -1;
	/* refused while it is in a group */
	if (ibv_destroy_qp(u->qp[i]))
		return ibv_destroy_qp(qp) || 1;
	u->qp[i] = qp;
	return 0;
}

static int group(struct user *u, int attach)
{
	union ibv_gid gid = {.raw = {0xff, 0x0e, [10] = 0xff, [11] = 0xff, 239, 1, 1}};
	struct ibv_qp *qp = u->qp[below(u, 4) ? QPS - 1 : (int)below(u, QPS)];

	gid.raw[15] = below(u, GROUPS);
	return (attach ? ibv_attach_mcast : ibv_detach_mcast)(qp, &gid, 0);
}

static int send_request(struct user *u)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,	  IBV_WR_SEND_WITH_IMM,	     IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV,
	};
	struct ibv_sge list[2] = {part(u), part(u)}, remote = part(u);
	struct ibv_mr *mr = *region(u);
	struct ibv_send_wr w = {.sg_list = list,
				.num_sge = below(u, 3),
				.opcode = opcodes[below(u, sizeof(opcodes) / sizeof(*opcodes))],
				.send_flags = below(u, 8)},
			   *bad;

	if (w.opcode == IBV_WR_LOCAL_INV || w.opcode == IBV_WR_SEND_WITH_INV) {
		w.invalidate_rkey = mr ? mr->rkey : strange(u);
	} else if (w.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		   w.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w.wr.atomic.remote_addr = below(u, 4) ? remote.addr & ~7ull : remote.addr;
		w.wr.atomic.rkey = remote.lkey;
	} else {
		w.wr.rdma.remote_addr = remote.addr;
		w.wr.rdma.rkey = remote.lkey;
	}
	/* a UD request has an address handle, which is not what this is about */
	return ibv_post_send(u->qp[below(u, QPS - 1)], &w, &bad);
}

static int receive(struct user *u)
{
	struct ibv_sge list[2] = {part(u), part(u)};
	struct ibv_recv_wr w = {.sg_list = list, .num_sge = below(u, 3)}, *bad;
	int i = below(u, QPS);

	return i == 1 ? ibv_post_srq_recv(u->srq, &w, &bad) : ibv_post_recv(u->qp[i], &w, &bad);
}

static int poll_cq(struct user *u)
{
	struct ibv_wc wc[16];

	return ibv_poll_cq(u->cq, 16, wc) < 0;
}

static int make(struct user *u, enum call call)
{
	switch (call) {
	case REGISTER:
		return register_region(u, 0);
	case REGISTER_ODP:
		return register_region(u, 1);
	case REREGISTER:
		return reregister(u);
	case DEREGISTER:
		return deregister(u);
	case ADVISE:
		return advise(u);
	case RESIZE_CQ:
		return ibv_resize_cq(u->cq, 1 + below(u, 2 * COMPLETIONS));
	case MODIFY_SRQ:
		return modify_srq(u);
	case MODIFY_QP:
		return modify_qp(u);
	case CONNECT:
		return connect_qp(u);
	case RENEW_QP:
		return renew_qp(u);
	case ATTACH:
	case DETACH:
		return group(u, call == ATTACH);
	case SEND:
		return send_request(u);
	case RECEIVE:
		return receive(u);
	default:
		return poll_cq(u);
	}
}

static int goes_on(void)
{
	for (int call = 0; call < CALLS && !told; call++)
		if (wanted[call] && !done[call])
			return 1;
	return !over;
}

static void on_alarm(int number)
{
	(void)number;
	over = 1;
}

static void on_term(int number)
{
	(void)number;
	told = 1;
	alarm(AFTER);
}

static void *run(void *user)
{
	struct user *u = user;

	while (goes_on()) {
		/* traffic is the most of it */
		enum call call = below(u, 2) ? SEND + below(u, 3) : below(u, CALLS);

		if (make(u, call))
			u->refused[call]++;
		else
			done[call]++;
	}
	return NULL;
}

static void begin(struct user *u, const char *device, uint64_t seed)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = RECEIVES, .max_sge = 2}};

	u->state = seed;
	u->context = open_device(device);
	u->gid = find_gid(u->context, 2, 1);
	for (int i = 0; i < 2; i++)
		CHECK(u->pd[i] = ibv_alloc_pd(u->context));
	CHECK(u->cq = ibv_create_cq(u->context, COMPLETIONS, NULL, NULL, 0));
	CHECK(u->srq = ibv_create_srq(u->pd[0], &srq));
	CHECK(u->memory = aligned_alloc(4096, MEMORY));
	memset(u->memory, 0, MEMORY);
	for (int i = 0; i < QPS; i++)
		CHECK(u->qp[i] = make_qp(u, i));
}

/* of words with commas between them */
static int is_in(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return 1;
	return 0;
}

/* in any order, as a process that ends: the kernel has to get along */
int main(int argc, char **argv)
{
	static struct user users[THREADS];

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: verbs_control DEVICE SECONDS SEED [REFUSED]\n");
		return 2;
	}
	for (int call = 0; argc == 5 && call < CALLS; call++)
		wanted[call] = !is_in(argv[4], names[call]);
	signal(SIGALRM, on_alarm);
	signal(SIGTERM, on_term);
	for (int i = 0; i < THREADS; i++)
		begin(&users[i], argv[1], strtoull(argv[3], NULL, 0) + i);
	alarm(atoi(argv[2]));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&users[i].thread, NULL, run, &users[i]));
	for (int i = 0; i < THREADS; i++)
		pthread_join(users[i].thread, NULL);
	for (int call = 0; call < CALLS; call++) {
		long refused = 0;

		for (int i = 0; i < THREADS; i++)
			refused += users[i].refused[call];
		printf("%s=%ld/%ld%s", names[call], done[call], refused,
		       call + 1 < CALLS ? " " : "\n");
	}
	return 0;
}
