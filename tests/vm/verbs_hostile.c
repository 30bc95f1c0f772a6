// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A hostile local user: posts work requests to its mapped work queues, while threads change every
 * field of the queues as the driver uses them.
 *
 *   verbs_hostile DEVICE PEER WHAT REQUESTS SECONDS SEED LEAST
 *
 * RC, UC, UD, and RC with a shared receive queue (rxe has no XRC), on DEVICE over RoCE v1 and v2,
 * each connected to a well-behaved queue pair on PEER. They end while a memory window is bound.
 *
 * WHAT
 *   av     UD: the destination's Ethernet address and the network type, nothing else
 *   wqe    every field of posted send work requests: SGEs, inline data, address vectors, state
 *   ring   the indices and sizes in the heads of all queues
 *   recv   receive work requests, in receive queues and the shared one
 *   all    all but the first, and queue pairs are reset and made ready again meanwhile
 *
 * Ends after REQUESTS work requests or after SECONDS and LEAST of them, whichever comes first, and
 * prints "requests=… resets=…". A queue pair that fails is connected again.
 */
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "verbs_setup.h"

#define MEMORY	    (1 << 20)
#define SENDS	    63 /* slots less one: distinguishes the queues of a queue pair */
#define RECEIVES    31
#define SHARED	    15
#define COMPLETIONS 1023
#define SGES	    4
#define INLINE	    128
#define CHANGERS    2
#define NETWORK_V1  3 /* the driver's own value */

enum service { RC, UC, UD, SRQ, SERVICES };

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RC};

/* a queue that the kernel shares with us */
struct ring {
	struct rxe_queue_buf *buf;
	uint32_t mask, log2_size; /* as they were: the shared ones are changed */
	uint32_t next;
};

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ring completions, shared;
	unsigned char *memory;
	union ibv_gid gid[2]; /* of RoCE v1 and v2 */
	int gid_index[2];
	unsigned char mac[6];
};

struct pair {
	enum service service;
	int version; /* 0: RoCE v1 */
	struct ibv_qp *qp, *peer;
	struct ring sends, receives;
	struct ring peer_receives;
	struct ibv_ah *ah;
	uint32_t ah_num;
};

static struct end attacker, victim;
static struct pair pairs[2 * SERVICES];
static int count;
static atomic_int stopping;
static int change_av, change_wqe, change_ring, change_recv, change_state;
static uint64_t seed;

/* splitmix64; each thread has its own state */
static _Thread_local uint64_t state;

static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static uint32_t below(uint32_t n)
{
	return draw() % n;
}

static uint64_t strange(void)
{
	static const uint64_t values[] = {
		0,
		1,
		2,
		7,
		31,
		64,
		128,
		255,
		1024,
		4096,
		0x7fffffff,
		0x80000000,
		0xfffffff0,
		0xffffffff,
		0x10000000,
		0x40000000,
		0xffff888000000000ull,
	};

	return below(3) ? values[below(sizeof(values) / sizeof(*values))] : draw();
}

/* queues differ in their number of slots; returns the newest mapping of that size */
static void find_ring(struct ring *r, uint32_t slots)
{
	static void *known[64];
	static int n;
	char line[512];
	FILE *maps;

	CHECK(maps = fopen("/proc/self/maps", "r"));
	r->buf = NULL;
	while (fgets(line, sizeof(line), maps)) {
		struct rxe_queue_buf *buf;
		unsigned long from;
		int i;

		if (!strstr(line, "uverbs") || sscanf(line, "%lx", &from) != 1)
			continue;
		buf = (struct rxe_queue_buf *)from;
		for (i = 0; i < n && known[i] != buf; i++)
			;
		if (i == n && buf->index_mask == slots) {
			r->buf = buf;
			break;
		}
	}
	fclose(maps);
	CHECK(r->buf && n < 64);
	known[n++] = r->buf;
	r->mask = slots;
	r->log2_size = r->buf->log2_elem_size;
	r->next = r->buf->producer_index;
}

static void *slot(const struct ring *r, uint32_t index)
{
	return r->buf->data + ((uint64_t)(index & r->mask) << r->log2_size);
}

static void publish(struct ring *r)
{
	r->next = (r->next + 1) & r->mask;
	__atomic_store_n(&r->buf->producer_index, r->next, __ATOMIC_RELEASE);
}

static void read_mac(struct end *e, unsigned int ifindex)
{
	struct ifreq request = {};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(if_indextoname(ifindex, request.ifr_name));
	CHECK(!ioctl(s, SIOCGIFHWADDR, &request));
	memcpy(e->mac, request.ifr_hwaddr.sa_data, 6);
	close(s);
}

static void open_end(struct end *e, const char *name)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = SHARED, .max_sge = SGES}};

	e->context = open_device(name);
	for (int version = 0; version < 2; version++) {
		struct ibv_gid_entry entry = find_gid(e->context, version + 1, 1);

		e->gid[version] = entry.gid;
		e->gid_index[version] = entry.gid_index;
		read_mac(e, entry.ndev_ifindex);
	}
	CHECK(e->pd = ibv_alloc_pd(e->context));
	CHECK(e->cq = ibv_create_cq(e->context, COMPLETIONS, NULL, NULL, 0));
	find_ring(&e->completions, COMPLETIONS);
	CHECK(e->srq = ibv_create_srq(e->pd, &srq));
	find_ring(&e->shared, SHARED);
	CHECK(e->memory = aligned_alloc(4096, MEMORY));
	memset(e->memory, 0, MEMORY);
	CHECK(e->mr = ibv_reg_mr(e->pd, e->memory, MEMORY,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | ALL_ACCESS));
	CHECK(e->mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2));
}

static struct ibv_qp *make_qp(struct end *e, enum service service)
{
	struct ibv_qp_init_attr init = {.send_cq = e->cq,
					.recv_cq = e->cq,
					.srq = service == SRQ ? e->srq : NULL,
					.qp_type = types[service],
					.cap = {.max_send_wr = SENDS,
						.max_recv_wr = RECEIVES,
						.max_send_sge = SGES,
						.max_recv_sge = SGES,
						.max_inline_data = INLINE}};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	CHECK(qp);
	return qp;
}

static void to_gid(struct ibv_ah_attr *a, const struct end *from, const struct end *to, int version)
{
	a->is_global = 1;
	a->port_num = 1;
	a->grh.dgid = to->gid[version];
	a->grh.sgid_index = from->gid_index[version];
	a->grh.hop_limit = 64;
}

/* from any state; if the other side fails meanwhile, it is tried again later */
static void connect_qp(struct ibv_qp *qp, struct ibv_qp *to, const struct end *from,
		       const struct end *end, const struct pair *p)
{
	struct connection c = {.type = types[p->service],
			       .dest_qp_num = to->qp_num,
			       .dgid = end->gid[p->version],
			       .sgid_index = from->gid_index[p->version],
			       .path_mtu = IBV_MTU_1024,
			       .min_rnr_timer = 1,
			       .timeout = 12,
			       .retry_cnt = 3,
			       .rnr_retry = 3};

	if (!to_reset(qp) && !to_init(qp, c.type))
		to_rts(qp, &c);
}

static void post_receives(struct ring *r, const struct end *e)
{
	for (uint32_t i = 0; i < r->mask; i++) {
		struct rxe_recv_wqe *w = slot(r, r->next);

		memset(w, 0, sizeof(*w));
		w->dma.length = w->dma.resid = 8192;
		w->dma.num_sge = 1 + below(SGES);
		for (uint32_t s = 0; s < SGES; s++)
			w->dma.sge[s] = (struct rxe_sge){(uintptr_t)e->memory + 8192 * s, 8192,
							 e->mr->lkey};
		publish(r);
	}
}

static void make_pair(struct pair *p, enum service service, int version)
{
	struct ibv_ah_attr a = {};

	p->service = service;
	p->version = version;
	p->qp = make_qp(&attacker, service);
	find_ring(&p->sends, SENDS);
	if (service != SRQ)
		find_ring(&p->receives, RECEIVES);
	p->peer = make_qp(&victim, service);
	if (service != SRQ)
		find_ring(&p->peer_receives, RECEIVES);
	to_gid(&a, &attacker, &victim, version);
	CHECK(p->ah = ibv_create_ah(attacker.pd, &a));
	/* private to rdma-core; numbers begin at 1 */
	p->ah_num = count + 1;
	connect_qp(p->qp, p->peer, &attacker, &victim, p);
	connect_qp(p->peer, p->qp, &victim, &attacker, p);
	if (service != SRQ) {
		post_receives(&p->receives, &attacker);
		post_receives(&p->peer_receives, &victim);
	}
}

static void fill_av(struct rxe_av *av, const struct pair *p)
{
	memset(av, 0, sizeof(*av));
	av->port_num = 1;
	av->grh.sgid_index = attacker.gid_index[p->version];
	av->grh.hop_limit = 64;
	memcpy(&av->grh.dgid, &victim.gid[p->version], 16);
	memcpy(av->dmac, victim.mac, 6);
	if (p->version) {
		av->network_type = RXE_NETWORK_TYPE_IPV4;
		av->sgid_addr._sockaddr_in.sin_family = AF_INET;
		av->dgid_addr._sockaddr_in.sin_family = AF_INET;
		memcpy(&av->sgid_addr._sockaddr_in.sin_addr, attacker.gid[1].raw + 12, 4);
		memcpy(&av->dgid_addr._sockaddr_in.sin_addr, victim.gid[1].raw + 12, 4);
	} else {
		av->network_type = NETWORK_V1;
		memcpy(&av->sgid_addr._sockaddr_in6.sin6_addr, &attacker.gid[0], 16);
		memcpy(&av->dgid_addr._sockaddr_in6.sin6_addr, &victim.gid[0], 16);
	}
}

/* a correct work request of any kind, including some that the service does not have */
static void post(struct pair *p)
{
	static const unsigned char rc[] = {
		IBV_WR_RDMA_WRITE,	     IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,	     IBV_WR_RDMA_READ,		 IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_LOCAL_INV,		 IBV_WR_BIND_MW,
		IBV_WR_SEND_WITH_INV,	     15 /* ATOMIC_WRITE */,	 14 /* FLUSH */};
	static const unsigned int lengths[] = {0, 8, 64, 100, 1000, 1024, 5000};
	struct rxe_send_wqe *w = slot(&p->sends, p->sends.next);
	uint32_t length = lengths[below(p->service == UD ? 6 : 7)];
	int opcode = rc[below(p->service == RC || p->service == SRQ ? sizeof(rc) : 4)];

	if (p->service == UD)
		opcode = below(2) ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    opcode == 15)
		length = 8;
	memset(w, 0, sizeof(*w) + INLINE);
	w->wr.opcode = opcode;
	w->wr.send_flags = below(2) ? IBV_SEND_SIGNALED : 0;
	if (p->service == UD) {
		w->wr.wr.ud.remote_qpn = p->peer->qp_num;
		w->wr.wr.ud.remote_qkey = QKEY;
		if (!change_av && below(2))
			w->wr.wr.ud.ah_num = p->ah_num;
		fill_av(&w->wr.wr.ud.av, p);
	} else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w->wr.wr.atomic.remote_addr = (uintptr_t)victim.memory;
		w->wr.wr.atomic.rkey = victim.mr->rkey;
	} else if (opcode == IBV_WR_BIND_MW) {
		w->wr.wr.mw.addr = (uintptr_t)attacker.memory;
		w->wr.wr.mw.length = 4096;
		w->wr.wr.mw.mr_lkey = attacker.mr->lkey;
		w->wr.wr.mw.mw_rkey = attacker.mw->rkey;
		w->wr.wr.mw.rkey = attacker.mw->rkey + 1;
		w->wr.wr.mw.access = IBV_ACCESS_REMOTE_READ;
	} else if (opcode == IBV_WR_LOCAL_INV) {
		w->wr.ex.invalidate_rkey = attacker.mw->rkey;
	} else {
		w->wr.wr.rdma.remote_addr = (uintptr_t)victim.memory + 65536;
		w->wr.wr.rdma.rkey = victim.mr->rkey;
	}
	w->iova = w->wr.wr.rdma.remote_addr;
	w->dma.length = w->dma.resid = length;
	if (length <= INLINE && below(2)) {
		w->wr.send_flags |= IBV_SEND_INLINE;
	} else {
		w->dma.num_sge = 1 + below(SGES);
		for (uint32_t s = 0; s < w->dma.num_sge; s++) {
			uint32_t part = s + 1 < w->dma.num_sge ? below(length + 1) : length;

			w->dma.sge[s] =
				(struct rxe_sge){(uintptr_t)attacker.memory + 65536 * (s + 1), part,
						 attacker.mr->lkey};
			length -= part;
		}
	}
	publish(&p->sends);
}

static void ring_bell(struct pair *p)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_post_send body;
	} command = {.header = {.command = IB_USER_VERBS_CMD_POST_SEND}};
	struct ib_uverbs_post_send_resp response;

	command.header.in_words = sizeof(command) / 4;
	command.header.out_words = sizeof(response) / 4;
	command.body.response = (uintptr_t)&response;
	command.body.qp_handle = p->qp->handle;
	command.body.wqe_size = sizeof(struct ibv_send_wr);
	/* refused while the queue pair is down */
	if (write(p->qp->context->cmd_fd, &command, sizeof(command)) < 0)
		CHECK(errno == EINVAL || errno == ENOMEM);
}

/* changes one field of a work request that the driver may be reading */
static void change_send(struct pair *p)
{
	uint32_t index = p->sends.buf->consumer_index + below(4);
	struct rxe_send_wqe *w = slot(&p->sends, index);
	volatile uint32_t *words = (volatile uint32_t *)w;

	switch (below(12)) {
	case 0:
		*(volatile uint32_t *)&w->wr.opcode = below(2) ? below(0x30) : strange();
		break;
	case 1:
		*(volatile uint32_t *)&w->wr.send_flags = below(2) ? below(64) : strange();
		break;
	case 2:
		*(volatile uint32_t *)&w->dma.cur_sge = strange();
		break;
	case 3:
		*(volatile uint32_t *)&w->dma.num_sge = strange();
		break;
	case 4:
		*(volatile uint32_t *)&w->dma.sge_offset = strange();
		break;
	case 5:
		*(volatile uint32_t *)&w->dma.resid = strange();
		break;
	case 6:
		*(volatile uint32_t *)&w->dma.length = strange();
		break;
	case 7:
		*(volatile uint32_t *)&w->state = below(6);
		break;
	case 8:
		*(volatile uint32_t *)&w->mask = draw() & 0xff;
		break;
	case 9:
		*(volatile uint32_t *)&w->dma.sge[below(SGES)].length = strange();
		break;
	default:
		words[below((sizeof(*w) + INLINE) / 4)] = strange();
	}
}

static void change_receive(struct ring *r)
{
	struct rxe_recv_wqe *w = slot(r, r->buf->consumer_index + below(2));
	volatile uint32_t *words = (volatile uint32_t *)w;

	if (below(2))
		words[below((sizeof(*w) + SGES * sizeof(struct rxe_sge)) / 4)] = strange();
	else
		*(volatile uint32_t *)&w->dma.num_sge = below(2) ? 1 : strange();
}

static void change_index(struct ring *r)
{
	if (below(2))
		*(volatile uint32_t *)&r->buf->producer_index = strange();
	else if (below(2))
		*(volatile uint32_t *)&r->buf->consumer_index = strange();
	else
		((volatile uint32_t *)r->buf)[below(sizeof(*r->buf) / 4)] = strange();
}

/* port, network type and Ethernet address are one word: to the victim, or back to ourselves */
static void flip_av(struct pair *p)
{
	struct rxe_av there, here;
	uint64_t words[2];

	fill_av(&there, p);
	here = there;
	memcpy(here.dmac, attacker.mac, 6);
	memcpy(&words[0], &there, sizeof(*words));
	memcpy(&words[1], &here, sizeof(*words));
	for (int round = 0; round < 16; round++) {
		struct rxe_send_wqe *w = slot(&p->sends, p->sends.buf->consumer_index);
		volatile uint64_t *word = (volatile uint64_t *)&w->wr.wr.ud.av;

		for (int i = 0; i < 256; i++)
			*word = words[i % 2];
	}
}

static void *change(void *number)
{
	state = seed + 1 + (uintptr_t)number;
	while (!stopping) {
		struct pair *p = &pairs[below(count)];

		if (change_av)
			flip_av(p);
		for (int i = 0; change_wqe && i < 64; i++)
			change_send(p);
		for (int i = 0; change_recv && i < 16; i++) {
			if (p->service == SRQ)
				change_receive(&attacker.shared);
			else
				change_receive(&p->receives);
			change_receive(p->service == SRQ ? &victim.shared : &p->peer_receives);
		}
		if (change_ring && !below(16)) {
			change_index(&p->sends);
			change_index(p->service == SRQ ? &attacker.shared : &p->receives);
			change_index(p->service == SRQ ? &victim.shared : &p->peer_receives);
			change_index(&attacker.completions);
		}
	}
	return NULL;
}

static int in_rts(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	return !ibv_query_qp(qp, &a, IBV_QP_STATE, &init) && a.qp_state == IBV_QPS_RTS;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* consumes completions without looking at them */
static void drain(struct ring *r)
{
	r->buf->consumer_index = r->buf->producer_index & r->mask;
}

static void reconnect(struct pair *p)
{
	connect_qp(p->qp, p->peer, &attacker, &victim, p);
	connect_qp(p->peer, p->qp, &victim, &attacker, p);
	/* the driver's position in the queue is its own index, which it writes here */
	p->sends.next = p->sends.buf->consumer_index & p->sends.mask;
	p->sends.buf->producer_index = p->sends.next;
}

int main(int argc, char **argv)
{
	pthread_t changers[CHANGERS];
	long requests = 0, resets = 0, wanted, least;
	double end;

	if (argc != 8) {
		fprintf(stderr, "usage: verbs_hostile DEVICE PEER WHAT REQUESTS SECONDS SEED "
				"LEAST\n");
		return 2;
	}
	int all = !strcmp(argv[3], "all");

	change_av = !strcmp(argv[3], "av");
	change_wqe = all || !strcmp(argv[3], "wqe");
	change_ring = all || !strcmp(argv[3], "ring");
	change_recv = all || !strcmp(argv[3], "recv");
	change_state = all;
	wanted = atol(argv[4]);
	least = atol(argv[7]);
	state = seed = strtoull(argv[6], NULL, 0);
	open_end(&attacker, argv[1]);
	open_end(&victim, argv[2]);
	post_receives(&attacker.shared, &attacker);
	post_receives(&victim.shared, &victim);
	for (int version = 0; version < 2; version++)
		for (enum service s = change_av ? UD : RC; s < (change_av ? UD + 1 : SERVICES); s++)
			make_pair(&pairs[count], s, version), count++;

	for (uintptr_t i = 0; i < CHANGERS; i++)
		CHECK(!pthread_create(&changers[i], NULL, change, (void *)i));
	end = now() + atof(argv[5]);
	while (requests < wanted && (requests < least || now() < end)) {
		struct pair *p = &pairs[below(count)];
		uint32_t room = (p->sends.buf->consumer_index - p->sends.next - 1) & p->sends.mask;
		uint32_t burst = 1 + below(8);

		if (burst > room)
			burst = room;
		for (uint32_t i = 0; i < burst; i++)
			post(p);
		requests += burst;
		ring_bell(p);
		drain(&attacker.completions);
		drain(&victim.completions);
		if (!below(8)) {
			post_receives(p->service == SRQ ? &victim.shared : &p->peer_receives,
				      &victim);
			if (!in_rts(p->qp) || !in_rts(p->peer) || (change_state && !below(16))) {
				reconnect(p);
				resets++;
			}
		}
		if (!burst)
			sched_yield();
	}
	stopping = 1;
	for (int i = 0; i < CHANGERS; i++)
		pthread_join(changers[i], NULL);
	printf("requests=%ld resets=%ld\n", requests, resets);
	return 0;
}
