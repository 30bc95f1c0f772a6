// SPDX-License-Identifier: GPL-2.0-only
/* rxedump's comments: their grammar, and what is absent; link headers that it makes. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "drop.h"
#include "link.h"
#include "packet_text.h"

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
	for (int i = 0; i < RXE_TX_STAGES; i++)
		rec.stage[i] = i + 1;
}

static void check_sent(void)
{
	struct packet closed = {.closed = true, .late = {.start = 1100, .xmit_ns = 4294967295u}};
	struct packet open = {.link_made = true}, stock = {.stock = true};

	make(DUMP_TX, 0x0a);
	check_text(&closed, " dir=tx net=v2 op=RC_RDMA_WRITE_ONLY qpn=17 dqpn=18 psn=4711 wqe_ns=1 "
			    "alloc_ns=2 bth_ns=3 route_ns=4 net_ns=5 copy_ns=6 icrc_ns=7 "
			    "xmit_ns=4294967295 gap_ns=72");
	check_text(&open, " dir=tx net=v2 op=RC_RDMA_WRITE_ONLY qpn=17 dqpn=18 psn=4711 wqe_ns=1 "
			  "alloc_ns=2 bth_ns=3 route_ns=4 net_ns=5 copy_ns=6 icrc_ns=7 link=made");
	check_text(&stock, " dir=tx net=v2 op=RC_RDMA_WRITE_ONLY qpn=17 dqpn=18 psn=4711 "
			   "alloc_ns=2 bth_ns=3 net_ns=5 copy_ns=6 icrc_ns=7");
	/* an answer has no work request; RoCE v1; every flag */
	make(DUMP_TX, 0x11);
	rec.protocol = 0x8915;
	rec.id.flags = RXE_FLAG_SWITCHED | RXE_FLAG_LOOPBACK;
	open.drop = DROP_SEND;
	check_text(&open, " dir=tx net=v1 op=RC_ACKNOWLEDGE qpn=17 dqpn=18 psn=4711 alloc_ns=2 "
			  "bth_ns=3 route_ns=4 net_ns=5 copy_ns=6 icrc_ns=7 switched=1 loopback=1 "
			  "link=made drop=send");
}

static void check_received(void)
{
	struct packet done = {
		.closed = true,
		.late = {.start = 2000, .flags = RXE_FLAG_SWITCHED, .stage = {100, 0, 0, 60, 0}}};
	struct packet flushed = {.closed = true, .drop = DROP_FLUSHED}, open = {};

	make(DUMP_RX, 0x3f);
	/* exec may read 0; copy and reply that did not happen are absent */
	check_text(&done, " dir=rx net=v2 op=0x3f qpn=17 dqpn=18 psn=4711 parse_ns=1 icrc_ns=2 "
			  "queue_ns=100 exec_ns=0 cqe_ns=60 gap_ns=997 switched=1");
	check_text(&open, " dir=rx net=v2 op=0x3f qpn=17 dqpn=18 psn=4711 parse_ns=1 icrc_ns=2");
	check_text(&flushed, " dir=rx net=v2 op=0x3f qpn=17 dqpn=18 psn=4711 parse_ns=1 icrc_ns=2 "
			     "drop=flushed");
}

static void check_dropped(void)
{
	struct packet p = {.drop = DROP_ICRC};

	make(DUMP_DROP, 0x64);
	rec.reason = DROP_ICRC;
	check_text(&p, " dir=rx net=v2 op=UD_SEND_ONLY dqpn=17 psn=4711 drop=icrc");
	rec.reason = p.drop = DROP_OPCODE;
	rec.id.opcode = 0xff; /* which is also the driver's word for no opcode */
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

/* an IPv4 header from RFC 1071's kind of example: its sum is known */
static void check_checksum(void)
{
	__u8 frame[24] = {0x45, 0, 0,	 0x73, 0, 0,	0x40, 0,    0x40, 0x11,
			  0,	0, 0xc0, 0xa8, 0, 0x01, 0xc0, 0xa8, 0,	  0xc7};
	__u8 six[40] = {0x60}, before[40];

	link_ipv4_checksum(frame, sizeof(frame));
	CHECK(frame[10] == 0xb8 && frame[11] == 0x61, "%02x%02x", frame[10], frame[11]);
	frame[10] = frame[11] = 0;
	link_ipv4_checksum(frame, 19); /* cut: a sum of what is not there would be a lie */
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
