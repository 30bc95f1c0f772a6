// SPDX-License-Identifier: GPL-2.0-only
/* rxedump's comments: their grammar, and what they leave out; the link headers that it makes. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "drop.h"
#include "link_header.h"
#include "packet_text.h"
#include "stage.h"

/* drop_reasons.c */
extern const char *const driver_drop_reasons[];
extern const size_t driver_drop_reasons_len;

static struct dump_record rec;

static void check_text(struct packet *p, const char *expected)
{
	char text[PACKET_TEXT_MAX];

	p->rec = &rec;
	*packet_text(text, p) = '\0';
	CHECK(!strcmp(text, expected), "got:%s", text);
}

static void make(enum dump_kind kind, __u8 opcode)
{
	memset(&rec, 0, sizeof(rec));
	rec.kind = kind;
	rec.protocol = 0x0800;
	rec.id = (struct packet_id){
		.begin = 1000, .qpn = 17, .dqpn = 18, .psn = 4711, .opcode = opcode};
	for (int i = 0; i < DUMP_STAGES; i++)
		rec.stage[i] = i + 1;
}

/* the stages of an event as the table has them: `first` in their direction; zeros of some: absent
 */
static void add_stages(char *text, enum direction dir, int first, int n, const __u32 *ns,
		       bool stock, bool response)
{
	for (int i = 0; i < n; i++) {
		const struct stage *s = &stages[dir][first + i];

		if ((stock && !s->on_stock) || (response && s->passed == RXE_PASSED_REQUESTS) ||
		    (!ns[i] && s->passed == RXE_PASSED_SOME))
			continue;
		sprintf(text + strlen(text), " %s_ns=%u", s->name, ns[i]);
	}
}

#define SENT " dir=tx net=v2 op=RC_RDMA_WRITE_ONLY qpn=17 dqpn=18 psn=4711"

static void check_sent(void)
{
	struct packet closed = {.closed = true, .late = {.xmit_ns = 4294967295u}};
	struct packet open = {.link_made = true}, stock = {.stock = true};
	char expected[PACKET_TEXT_MAX] = SENT;

	make(DUMP_TX, 0x0a);
	add_stages(expected, DIR_TX, 0, RXE_TX_STAGES, rec.stage, false, false);
	CHECK(!strncmp(expected, SENT " wqe_ns=1 alloc_ns=2 ", sizeof(SENT) + 20), "%s", expected);
	/* stage i takes i ns, so all together take n * (n + 1) / 2 */
	closed.late.start = 1000 + RXE_TX_STAGES * (RXE_TX_STAGES + 1) / 2 + 72;
	strcpy(expected + strlen(expected), " xmit_ns=4294967295 gap_ns=72");
	check_text(&closed, expected);
	expected[strlen(expected) - strlen(" xmit_ns=4294967295 gap_ns=72")] = '\0';
	strcat(expected, " link=made");
	check_text(&open, expected);
	strcpy(expected, SENT);
	add_stages(expected, DIR_TX, 0, RXE_TX_STAGES, rec.stage, true, false);
	CHECK(!strstr(expected, " wqe_ns=") && !strstr(expected, " route_ns="), "%s", expected);
	check_text(&stock, expected);
	/* a response has no work request; RoCE v1; every flag */
	make(DUMP_TX, 0x11);
	rec.protocol = 0x8915;
	rec.id.flags = RXE_FLAG_SWITCHED | RXE_FLAG_LOOPBACK;
	open.drop = DROP_SEND;
	strcpy(expected, " dir=tx net=v1 op=RC_ACKNOWLEDGE qpn=17 dqpn=18 psn=4711");
	add_stages(expected, DIR_TX, 0, RXE_TX_STAGES, rec.stage, false, true);
	CHECK(!strstr(expected, " wqe_ns=") && strstr(expected, " route_ns="), "%s", expected);
	strcat(expected, " switched=1 loopback=1 link=made drop=send");
	check_text(&open, expected);
}

#define RECEIVED " dir=rx net=v2 op=0x3f qpn=17 dqpn=18 psn=4711"

static void check_received(void)
{
	struct packet done = {.closed = true, .late = {.start = 2000, .flags = RXE_FLAG_SWITCHED}};
	struct packet flushed = {.closed = true, .drop = DROP_FLUSHED}, open = {};
	char expected[PACKET_TEXT_MAX] = RECEIVED;
	size_t arrived;

	make(DUMP_RX, 0x3f);
	add_stages(expected, DIR_RX, 0, RXE_RX_STAGES, rec.stage, false, false);
	CHECK(!strncmp(expected, RECEIVED " parse_ns=1 icrc_ns=2", sizeof(RECEIVED) + 20), "%s",
	      expected);
	arrived = strlen(expected);
	check_text(&open, expected);
	strcpy(expected + arrived, " drop=flushed");
	check_text(&flushed, expected);
	/* exec may read 0; copy and reply that did not happen are absent */
	done.late.stage[RXE_DONE_QUEUE] = 100;
	done.late.stage[RXE_DONE_CQE] = 60;
	expected[arrived] = '\0';
	add_stages(expected, DIR_RX, RX_DONE, RXE_DONE_STAGES, done.late.stage, false, false);
	CHECK(strstr(expected, " queue_ns=100 exec_ns=0 ") && strstr(expected, " cqe_ns=60") &&
		      !strstr(expected, " copy_ns=") && !strstr(expected, " reply_ns="),
	      "%s", expected);
	sprintf(expected + strlen(expected), " gap_ns=%d switched=1",
		1000 - RXE_RX_STAGES * (RXE_RX_STAGES + 1) / 2);
	check_text(&done, expected);
}

static void check_dropped(void)
{
	struct packet p = {.drop = DROP_ICRC};

	make(DUMP_DROP, 0x64);
	rec.reason = DROP_ICRC;
	check_text(&p, " dir=rx net=v2 op=UD_SEND_ONLY dqpn=17 psn=4711 drop=icrc");
	rec.reason = p.drop = DROP_OPCODE;
	rec.id.opcode = 0xff; /* also the driver's value for no opcode */
	check_text(&p, " dir=rx net=v2 op=0xff dqpn=17 psn=4711 drop=opcode");
	rec.reason = p.drop = DROP_SHORT;
	check_text(&p, " dir=rx net=v2 drop=short");
	make(DUMP_DROP, 0x04);
	rec.reason = p.drop = DROP_SEND_STATE;
	check_text(&p, " dir=tx net=v2 op=RC_SEND_ONLY qpn=17 psn=4711 drop=send_state");
}

static void check_prefix(void)
{
	char prefix[PACKET_PREFIX_MAX], name[300];
	size_t length = packet_prefix(prefix, "a b=%\n\303\244", "rxe_0.1-~");

	CHECK(!strcmp(prefix, "rocelab/1 node=a%20b%3D%25%0A%C3%A4 dev=rxe_0.1-~"), "%s", prefix);
	CHECK(length == strlen(prefix), "%zu", length);
	/* names cannot make it longer than its room */
	memset(name, '%', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	length = packet_prefix(prefix, name, name);
	CHECK(length < PACKET_PREFIX_MAX, "%zu", length);
}

static void check_reasons(void)
{
	size_t n = driver_drop_reasons_len;

	CHECK(n == DROP_COUNT, "the driver has %zu reasons, lib/drop.h %d", n, DROP_COUNT);
	for (size_t i = 0; i < n && i < DROP_COUNT; i++)
		CHECK(!strcmp(drop_name(i), driver_drop_reasons[i]), "%zu: %s, the driver's %s", i,
		      drop_name(i), driver_drop_reasons[i]);
	CHECK(!strcmp(drop_name(DROP_COUNT), "unknown"), "beyond");
}

/* an IPv4 header with a known checksum */
static void check_checksum(void)
{
	__u8 frame[24] = {0x45, 0, 0,	 0x73, 0, 0,	0x40, 0,    0x40, 0x11,
			  0,	0, 0xc0, 0xa8, 0, 0x01, 0xc0, 0xa8, 0,	  0xc7};
	__u8 six[40] = {0x60}, before[40];

	link_ipv4_checksum(frame, sizeof(frame));
	CHECK(frame[10] == 0xb8 && frame[11] == 0x61, "%02x%02x", frame[10], frame[11]);
	frame[10] = frame[11] = 0;
	link_ipv4_checksum(frame,
			   19); /* truncated: the checksum would cover bytes that are missing */
	CHECK(!frame[10] && !frame[11], "%02x%02x", frame[10], frame[11]);
	memcpy(before, six, sizeof(six));
	link_ipv4_checksum(six, sizeof(six));
	CHECK(!memcmp(before, six, sizeof(six)), "IPv6 has none");
	link_ipv4_checksum(six, 0);
}

/* a sent frame of 20 bytes of IPv4 to 10.0.0.last */
static struct dump_record *frame_to(__u8 last)
{
	static struct {
		struct dump_record rec;
		__u8 room[20];
	} made;

	memset(&made, 0, sizeof(made));
	made.rec.protocol = 0x0800;
	made.rec.captured = made.rec.length = 20;
	made.rec.frame[16] = 10;
	made.rec.frame[19] = last;
	return &made.rec;
}

static void check_links(void)
{
	static const __u8 known[LINK_LEN] = "\2\2\2\2\2\2\1\1\1\1\1\1\10";
	static struct links links;
	struct interface interface = {.has_mac = true, .mac = {1, 1, 1, 1, 1, 1}};
	__u8 link[LINK_LEN];

	link_learn(&links, frame_to(7), known);
	link_make(&links, &interface, frame_to(7), true, link);
	CHECK(!memcmp(link, known, LINK_LEN), "what was learnt");
	link_make(&links, &interface, frame_to(8), true, link);
	CHECK(!memcmp(link, "\0\0\0\0\0\0\1\1\1\1\1\1\10\0", LINK_LEN), "a stranger");
	link_make(&links, &interface, frame_to(7), false, link);
	CHECK(!memcmp(link, "\1\1\1\1\1\1\0\0\0\0\0\0\10\0", LINK_LEN), "received");
	for (int i = 0; i < 3 * MAX_LINKS; i++) { /* the table is bounded */
		struct dump_record *r = frame_to(9);

		r->frame[17] = i >> 8;
		r->frame[18] = i;
		link_learn(&links, r, known);
	}
	CHECK(links.count == MAX_LINKS, "%d", links.count);
}

int main(void)
{
	check_sent();
	check_received();
	check_dropped();
	check_prefix();
	check_reasons();
	check_checksum();
	check_links();
	return check_end("packet");
}
