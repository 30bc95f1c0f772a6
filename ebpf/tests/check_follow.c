// SPDX-License-Identifier: GPL-2.0-only
/* Which packets belong to a message. */
#include "check.h"
#include "message_follow.h"

enum {
	QPN = 17,
	SEND_FIRST = 0,
	SEND_MIDDLE = 1,
	SEND_LAST = 2,
	SEND_ONLY = 4,
	READ = 0x0c,
	READ_FIRST = 0x0d,
	READ_MIDDLE = 0x0e,
	READ_LAST = 0x0f,
	ACK = 0x11
};

/* drop.c's list is not needed here */
const char *drop_name(unsigned int reason)
{
	(void)reason;
	return "";
}

static bool takes(struct follow *f, enum dump_kind kind, int opcode, __u32 psn, __u32 qpn)
{
	struct dump_record rec = {.kind = kind,
				  .id = {.opcode = opcode, .psn = psn & 0xffffff, .qpn = qpn}};
	struct packet p = {.rec = &rec};

	return follow_takes(f, &p);
}

#define SENT(opcode, psn)     takes(&f, DUMP_TX, opcode, psn, QPN)
#define RECEIVED(opcode, psn) takes(&f, DUMP_RX, opcode, psn, QPN)
#define YES(what)	      CHECK(what, "is of the message")
#define NO(what)	      CHECK(!(what), "is not of the message")

static void check_send(void)
{
	struct follow f = {};

	CHECK(follow_parse(&f, "17:0xffffff"), "by PSN, around the end of the numbers");
	NO(SENT(SEND_ONLY, 0xfffffe));
	NO(takes(&f, DUMP_TX, SEND_FIRST, 0xffffff, QPN + 1));
	YES(SENT(SEND_FIRST, 0xffffff));
	YES(SENT(SEND_MIDDLE, 0));
	NO(RECEIVED(ACK, 0xfffffe));
	YES(RECEIVED(ACK, 0));
	NO(RECEIVED(SEND_ONLY, 0)); /* the peer's own */
	YES(SENT(SEND_LAST, 1));
	NO(SENT(SEND_ONLY, 2));
	YES(SENT(SEND_MIDDLE, 0)); /* again */
	YES(RECEIVED(ACK, 2));	   /* of the next, and so of this one */
	NO(RECEIVED(ACK, 3));
}

static void check_read(void)
{
	struct follow f = {};

	CHECK(follow_parse(&f, "17:100"), "a READ that is received");
	YES(RECEIVED(READ, 100));
	YES(SENT(READ_FIRST, 100));
	YES(SENT(READ_MIDDLE, 101));
	YES(SENT(READ_LAST, 102));
	NO(SENT(READ_LAST, 103));
	NO(SENT(ACK, 103));
	YES(RECEIVED(READ, 101)); /* again, from the middle */
	NO(RECEIVED(READ, 103));
	YES(SENT(READ_LAST, 102));
}

static void check_number(void)
{
	struct follow f = {};

	CHECK(follow_parse(&f, "17:#2"), "the second");
	NO(SENT(SEND_ONLY, 5));
	NO(RECEIVED(SEND_ONLY, 9));
	NO(SENT(SEND_ONLY, 5)); /* again, so not the second */
	YES(SENT(SEND_FIRST, 6));
	NO(SENT(SEND_ONLY, 5));
	YES(SENT(SEND_LAST, 7));
	YES(RECEIVED(ACK, 7));
}

static void check_refused(void)
{
	static const char *const wrong[] = {"",	     "17",	     "17:",	    ":5",
					    "0:5",   "17:#0",	     "17:#",	    "x:5",
					    "17:5x", "17:0x1000000", "0x1000000:5", "17:-1"};

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct follow f = {};

		CHECK(!follow_parse(&f, wrong[i]), "%s", wrong[i]);
	}
}

int main(void)
{
	check_send();
	check_read();
	check_number();
	check_refused();
	return check_end("follow");
}
