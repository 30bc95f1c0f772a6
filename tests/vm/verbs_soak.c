// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One end of a connection that carries verified messages both ways until SIGINT, and reconnects
 * whenever the link has broken the connection.
 *
 *   verbs_soak DEVICE GID_INDEX PORT STATUS [PEER]
 *
 * With PEER, an IPv4 address, it connects there, otherwise it listens. The ends exchange the
 * attributes of their queue pairs by TCP. Messages are SEND, WRITE with immediate and READ in turn,
 * of 8 to MAX_SIZE bytes that follow from the message's number and direction. Over all connections,
 * each message must arrive once, in order and unchanged; acknowledged ones must have arrived. The
 * file STATUS has the current counts and errors. On SIGINT, both ends finish what they have
 * started. Fails when nothing has moved for STALL_SECONDS (environment; 120).
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "verbs_setup.h"

#define DEPTH	 8	     /* messages in flight, and receives posted */
#define TARGETS	 (4 * DEPTH) /* a WRITE may be two queues ahead of the last checked one */
#define MAX_SIZE 16384
#define RECEIVE	 (1ull << 63)

enum kind { SEND, WRITE, READ, KINDS };

/* what the ends exchange when they connect */
struct hello {
	union ibv_gid gid;
	uint32_t qpn, psn;
	uint64_t target, source; /* addresses for WRITE and READ */
	uint32_t rkey, pad;
	uint64_t next; /* the message that has not arrived yet */
};

/* memory that the device reads and writes */
struct memory {
	unsigned char out[DEPTH][MAX_SIZE], in[DEPTH][MAX_SIZE], read[DEPTH][MAX_SIZE];
	unsigned char target[TARGETS][MAX_SIZE], source[MAX_SIZE];
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct memory *memory;
static struct ibv_comp_channel *channel;
static int gid_index, client;

/* one connection */
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct hello mine, theirs;
static int tcp = -1;
static int sends, receives; /* posted, and not completed */
static int broken;

/* over all connections; numbers of messages */
static uint64_t next_out, acked, next_in;
static uint64_t end_in = UINT64_MAX; /* their last message's successor, when they said so */
static int said_end, said_bye, heard_bye;
static uint64_t connections, moved_bytes, reads, hung_up;
static uint64_t errors[IBV_WC_GENERAL_ERR + 1];
static time_t last_progress;
static int status_file;
static volatile sig_atomic_t stopping;

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void stop(int signal)
{
	(void)signal;
	stopping = 1;
}

static __attribute__((noreturn)) void fail(const char *what, uint64_t number)
{
	static const char text[] =
		"verbs_soak: %s: %llu (sent %llu, acknowledged %llu, received %llu)\n";

	for (int file = STDERR_FILENO; file >= 0; file = file == status_file ? -1 : status_file)
		dprintf(file, text, what, (unsigned long long)number, (unsigned long long)next_out,
			(unsigned long long)acked, (unsigned long long)next_in);
	exit(1);
}

/* fixed width, so a reader never sees the rest of an older line */
static void report(int file)
{
	char line[256];
	int n;

	n = snprintf(line, sizeof(line),
		     "connections=%-8llu sent=%-12llu received=%-12llu reads=%-12llu "
		     "bytes=%-16llu retry_exceeded=%-8llu no_route=%-8llu hung_up=%-8llu\n",
		     (unsigned long long)connections, (unsigned long long)acked,
		     (unsigned long long)next_in, (unsigned long long)reads,
		     (unsigned long long)moved_bytes,
		     (unsigned long long)errors[IBV_WC_RETRY_EXC_ERR],
		     (unsigned long long)errors[IBV_WC_LOC_QP_OP_ERR], (unsigned long long)hung_up);
	CHECK(pwrite(file, line, n, 0) == n || write(file, line, n) == n);
}

static void tick(void)
{
	static time_t reported;
	static long limit;

	if (!limit)
		limit = getenv("STALL_SECONDS") ? atol(getenv("STALL_SECONDS")) : 120;
	if (now() != reported) {
		reported = now();
		report(status_file);
	}
	if (now() - last_progress > limit)
		fail("nothing has moved for so many seconds", now() - last_progress);
}

static void progress(void)
{
	last_progress = now();
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9;
	return x ^ x >> 32;
}

static enum kind kind_of(uint64_t number)
{
	return number % KINDS;
}

static int size_of(uint64_t number)
{
	return 8 + mix(number) % (MAX_SIZE - 7);
}

/* the number itself, then what follows from number and direction */
static void fill(unsigned char *to, uint64_t number, int direction)
{
	uint64_t word = number, seed = mix(number * 2 + direction + 1);

	for (int i = 0, size = size_of(number); i < size; i += 8) {
		memcpy(to + i, &word, size - i < 8 ? size - i : 8);
		word = mix(seed + i);
	}
}

static void verify(const unsigned char *got, uint64_t number, int direction)
{
	static unsigned char want[MAX_SIZE];

	fill(want, number, direction);
	if (memcmp(got, want, size_of(number)))
		fail("the data of a message is not what was sent", number);
	moved_bytes += size_of(number);
}

/* this end's data for READs, from its first byte */
static void fill_source(unsigned char *to, int direction)
{
	for (int i = 0; i < MAX_SIZE; i++)
		to[i] = mix(2 * i + direction);
}

static void post_receive(int slot)
{
	struct ibv_sge sge = {(uintptr_t)memory->in[slot], MAX_SIZE, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = RECEIVE | slot, .sg_list = &sge, .num_sge = 1};

	CHECK(!ibv_post_recv(qp, &wr, &bad));
	receives++;
}

/* how many messages before this one took a receive */
static uint64_t arrival(uint64_t number)
{
	return number / KINDS * (KINDS - 1) + number % KINDS;
}

static void post_send(void)
{
	uint64_t number = next_out;
	int slot = number % DEPTH, size = size_of(number);
	enum kind kind = kind_of(number);
	struct ibv_sge sge = {(uintptr_t)memory->out[slot], size, mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = number,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .send_flags = IBV_SEND_SIGNALED};

	fill(memory->out[slot], number, client);
	wr.wr.rdma.rkey = theirs.rkey;
	if (kind == SEND) {
		wr.opcode = IBV_WR_SEND;
	} else if (kind == WRITE) {
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = htonl((uint32_t)number);
		wr.wr.rdma.remote_addr =
			theirs.target + arrival(number) % TARGETS * (uint64_t)MAX_SIZE;
	} else {
		wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = theirs.source;
		sge.addr = (uintptr_t)memory->read[slot];
		memset(memory->read[slot], 0, size);
	}
	CHECK(!ibv_post_send(qp, &wr, &bad));
	next_out++;
	sends++;
}

static void sent(uint64_t number)
{
	static unsigned char want[MAX_SIZE];

	if (kind_of(number) == READ) {
		fill_source(want, !client);
		if (memcmp(memory->read[number % DEPTH], want, size_of(number)))
			fail("the data of a READ is not what is there", number);
		moved_bytes += size_of(number);
		reads++;
	}
	acked = number + 1;
	progress();
}

static void received(const struct ibv_wc *wc)
{
	int slot = wc->wr_id & ~RECEIVE;

	if (kind_of(next_in) == READ)
		next_in++;
	if (kind_of(next_in) == SEND) {
		if (wc->opcode != IBV_WC_RECV || (int)wc->byte_len != size_of(next_in))
			fail("not the SEND that was expected", next_in);
		verify(memory->in[slot], next_in, !client);
	} else {
		if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM ||
		    ntohl(wc->imm_data) != (uint32_t)next_in)
			fail("not the WRITE that was expected", next_in);
		verify(memory->target[arrival(next_in) % TARGETS], next_in, !client);
	}
	next_in++;
	progress();
	if (!broken)
		post_receive(slot);
}

static void completed(const struct ibv_wc *wc)
{
	int receive = !!(wc->wr_id & RECEIVE);

	*(receive ? &receives : &sends) -= 1;
	if (wc->status == IBV_WC_SUCCESS) {
		if (receive)
			received(wc);
		else
			sent(wc->wr_id);
		return;
	}
	broken = 1;
	errors[wc->status]++;
	/* the only errors that a cut link may cause */
	if (wc->status != IBV_WC_RETRY_EXC_ERR && wc->status != IBV_WC_WR_FLUSH_ERR &&
	    wc->status != IBV_WC_LOC_QP_OP_ERR) {
		fail(ibv_wc_status_str(wc->status), wc->wr_id);
	}
}

static int drain(void)
{
	struct ibv_wc wc;
	int n, count = 0;

	for (; (n = ibv_poll_cq(cq, 1, &wc)) > 0; count++)
		completed(&wc);
	CHECK(n == 0);
	return count;
}

/* waits for completions or for TCP, a second at most */
static void wait_a_little(void)
{
	struct pollfd fds[] = {{.fd = channel->fd, .events = POLLIN},
			       {.fd = broken ? -1 : tcp, .events = POLLIN}};
	struct ibv_cq *which;
	void *unused;
	char word;

	CHECK(!ibv_req_notify_cq(cq, 0));
	/* what came before the request raises no event */
	if (poll(fds, 2, drain() ? 0 : 1000) < 0)
		CHECK(errno == EINTR);
	if (fds[0].revents & POLLIN) {
		CHECK(!ibv_get_cq_event(channel, &which, &unused));
		ibv_ack_cq_events(which, 1);
	}
	if (fds[1].revents) {
		if (recv(tcp, &word, 1, 0) != 1)
			broken = 1, hung_up++;
		else if (word == 'B')
			heard_bye = 1;
		else if (recv(tcp, &end_in, sizeof(end_in), MSG_WAITALL) != sizeof(end_in))
			broken = 1;
	}
	tick();
}

static void make_queue_pair(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = DEPTH,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	CHECK(cq = ibv_create_cq(context, 4 * DEPTH, NULL, channel, 0));
	init.send_cq = init.recv_cq = cq;
	CHECK(qp = ibv_create_qp(pd, &init));
	CHECK(!to_init(qp, IBV_QPT_RC));
	sends = receives = broken = said_end = said_bye = heard_bye = 0;
	for (int i = 0; i < DEPTH; i++)
		post_receive(i);
	mine.qpn = qp->qp_num;
	/* a packet of an earlier connection, still on its way, belongs to none */
	CHECK(getrandom(&mine.psn, sizeof(mine.psn), 0) == sizeof(mine.psn));
	mine.psn &= 0xffffff;
	mine.next = kind_of(next_in) == READ ? next_in + 1 : next_in;
}

static void connect_queue_pair(void)
{
	struct connection c = {.type = IBV_QPT_RC,
			       .dest_qp_num = theirs.qpn,
			       .rq_psn = theirs.psn,
			       .sq_psn = mine.psn,
			       .dgid = theirs.gid,
			       .sgid_index = gid_index,
			       .min_rnr_timer = 12,
			       .timeout = 16,	/* 0.27 s, and six times more */
			       .retry_cnt = 6,	/* rxe takes 7 for ever */
			       .rnr_retry = 7}; /* for ever */
	struct ibv_port_attr port;

	CHECK(!ibv_query_port(context, 1, &port));
	c.path_mtu = port.active_mtu;
	CHECK(!to_rts(qp, &c));
}

/* waits until all that was posted has completed, successfully or flushed */
static void destroy_queue_pair(void)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

	broken = 1;
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
	while (sends || receives)
		wait_a_little();
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_cq(cq));
}

/* a TCP connection to the other end, once the link allows it */
static void meet(int listener, const struct sockaddr_in *peer)
{
	struct timeval patience = {.tv_sec = 5};
	struct pollfd waiting = {.fd = listener, .events = POLLIN};
	int one = 1;

	for (;; tick()) {
		if (!client) {
			if (poll(&waiting, 1, 1000) <= 0)
				continue;
			CHECK((tcp = accept(listener, NULL, NULL)) >= 0);
		} else {
			CHECK((tcp = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
			/* of connect(2), too */
			setsockopt(tcp, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
			if (connect(tcp, (const struct sockaddr *)peer, sizeof(*peer))) {
				close(tcp);
				usleep(100000);
				continue;
			}
		}
		setsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (send(tcp, &mine, sizeof(mine), MSG_NOSIGNAL) == sizeof(mine) &&
		    recv(tcp, &theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs))
			return;
		close(tcp);
	}
}

static void say(const void *what, size_t size)
{
	if (send(tcp, what, size, MSG_NOSIGNAL) != (ssize_t)size)
		broken = 1;
}

/* until both have said that they have everything, or the connection breaks; whether it is over */
static int carry(void)
{
	/* what was acknowledged has arrived; the rest is sent again */
	if (theirs.next < acked)
		fail("acknowledged, and yet the other end waits for", theirs.next);
	next_out = theirs.next;
	end_in = UINT64_MAX;
	connections++;
	progress();
	while (!broken) {
		while (!stopping && !broken && sends < DEPTH)
			post_send();
		if (stopping && !sends && !said_end) {
			struct __attribute__((packed)) {
				char word;
				uint64_t next;
			} end = {'E', next_out};

			said_end = 1;
			say(&end, sizeof(end));
		}
		if (said_end && arrival(next_in) >= arrival(end_in) && !said_bye) {
			said_bye = 1;
			say("B", 1);
		}
		if (said_bye && heard_bye)
			return 1;
		wait_a_little();
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction on_stop = {.sa_handler = stop};
	struct sockaddr_in address = {.sin_family = AF_INET};
	int over, one = 1, listener = -1;

	if (argc < 5 || argc > 6) {
		fprintf(stderr, "usage: verbs_soak DEVICE GID_INDEX PORT STATUS [PEER]\n");
		return 2;
	}
	context = open_device(argv[1]);
	gid_index = atoi(argv[2]);
	address.sin_port = htons(atoi(argv[3]));
	CHECK((status_file = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC, 0644)) >= 0);
	client = argc == 6;
	sigaction(SIGINT, &on_stop, NULL);

	CHECK(pd = ibv_alloc_pd(context));
	CHECK(channel = ibv_create_comp_channel(context));
	CHECK(!posix_memalign((void **)&memory, 4096, sizeof(*memory)));
	memset(memory, 0, sizeof(*memory));
	fill_source(memory->source, client);
	CHECK(mr = ibv_reg_mr(pd, memory, sizeof(*memory),
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_REMOTE_READ));
	CHECK(!ibv_query_gid(context, 1, gid_index, &mine.gid));
	mine.target = (uintptr_t)memory->target;
	mine.source = (uintptr_t)memory->source;
	mine.rkey = mr->rkey;

	if (client) {
		CHECK(inet_pton(AF_INET, argv[5], &address.sin_addr) == 1);
	} else {
		CHECK((listener = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
		setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		CHECK(!bind(listener, (struct sockaddr *)&address, sizeof(address)));
		CHECK(!listen(listener, 8));
	}
	progress();
	do {
		make_queue_pair();
		meet(listener, &address);
		connect_queue_pair();
		over = carry();
		destroy_queue_pair();
		close(tcp);
	} while (!over);
	report(STDOUT_FILENO);

	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_destroy_comp_channel(channel));
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));
	return 0;
}
