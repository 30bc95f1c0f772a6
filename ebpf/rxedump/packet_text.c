// SPDX-License-Identifier: GPL-2.0-only
/* Written out by hand rather than with printf: it runs for every packet. */
#include "packet_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "bth.h"
#include "drop.h"

#define NAME_MAX_BYTES 128

enum { TX_ALL = RXE_TX_STAGES };

/* keys with their lengths, in room that can be copied as a whole: fewer instructions that way */
struct key {
	char text[15];
	__u8 length;
};
#define KEY(word) {" " word "=", sizeof(" " word "=") - 1}

static const struct key tx_keys[] = {KEY("wqe_ns"), KEY("alloc_ns"), KEY("bth_ns"), KEY("route_ns"),
				     KEY("net_ns"), KEY("copy_ns"),  KEY("icrc_ns")};
static const struct key rx_keys[] = {KEY("parse_ns"), KEY("icrc_ns")};
static const struct key done_keys[] = {KEY("queue_ns"), KEY("exec_ns"), KEY("copy_ns"),
				       KEY("cqe_ns"), KEY("reply_ns")};
static const struct key key_xmit = KEY("xmit_ns"), key_gap = KEY("gap_ns"), key_qpn = KEY("qpn"),
			key_dqpn = KEY("dqpn"), key_psn = KEY("psn");

static char *put(char *at, const char *text)
{
	return stpcpy(at, text);
}

/* two digits at a time */
static char pairs[100][2];

static __attribute__((constructor)) void fill_pairs(void)
{
	for (int i = 0; i < 100; i++) {
		pairs[i][0] = '0' + i / 10;
		pairs[i][1] = '0' + i % 10;
	}
}

static unsigned int count_digits(__u64 value)
{
	unsigned int n = 1;

	for (; value >= 10000; n += 4)
		value /= 10000;
	return n + (value >= 10) + (value >= 100) + (value >= 1000);
}

static char *put_number(char *at, __u64 value)
{
	char *end = at + count_digits(value), *d = end;

	for (; value >= 100; value /= 100) {
		d -= 2;
		memcpy(d, pairs[value % 100], 2);
	}
	if (value >= 10)
		memcpy(at, pairs[value], 2);
	else
		*at = '0' + value;
	return end;
}

/* writes the whole room of the key: the text has that much to spare */
static char *put_pair(char *at, const struct key *key, __u64 value)
{
	memcpy(at, key->text, sizeof(key->text));
	return put_number(at + key->length, value);
}

/* unreserved characters of RFC 3986; all others as %XX */
static char *put_escaped(char *at, const char *value)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; value[i] && i < NAME_MAX_BYTES; i++) {
		unsigned char c = value[i];

		if ((c < 0x80 && isalnum(c)) || strchr("-._~", c)) {
			*at++ = c;
		} else {
			*at++ = '%';
			*at++ = hex[c >> 4];
			*at++ = hex[c & 15];
		}
	}
	return at;
}

void packet_escape(char escaped[PACKET_PREFIX_MAX], const char *value)
{
	*put_escaped(escaped, value) = '\0';
}

size_t packet_prefix(char prefix[PACKET_PREFIX_MAX], const char *node, const char *dev)
{
	char *at = put_escaped(put(prefix, "rocelab/1 node="), node);

	at = put_escaped(put(at, " dev="), dev);
	*at = '\0';
	return at - prefix;
}

bool packet_is_tx(const struct packet *p)
{
	return p->rec->kind == DUMP_TX ||
	       (p->rec->kind == DUMP_DROP &&
		(p->rec->reason == DROP_SEND_STATE || p->rec->reason == DROP_SEND));
}

/* " op=NAME" of all opcodes; those that the specification does not name are numbers: "0x3f" */
static struct {
	char text[63];
	__u8 length;
	bool answer;
} opcodes[256];

static __attribute__((constructor)) void fill_opcodes(void)
{
	for (int op = 0; op < 256; op++) {
		enum bth_class class = bth_class_of(op);

		int n;

		if (bth_name(op))
			n = snprintf(opcodes[op].text, sizeof(opcodes[op].text), " op=%s",
				     bth_name(op));
		else
			n = snprintf(opcodes[op].text, sizeof(opcodes[op].text), " op=0x%02x", op);
		opcodes[op].length = n;
		opcodes[op].answer = class == BTH_ACKNOWLEDGE || class == BTH_ATOMIC_ACKNOWLEDGE ||
				     class == BTH_RDMA_READ_RESPONSE;
	}
}

/* a stage that this packet does not pass through, or that the driver cannot show, reads 0 */
static bool has_tx_stage(const struct packet *p, int stage)
{
	if (stage == RXE_TX_WQE)
		return !p->stock && !opcodes[p->rec->id.opcode].answer;
	return stage != RXE_TX_ROUTE || !p->stock;
}

static char *put_tx_stages(char *at, const struct packet *p)
{
	__u64 end = p->rec->id.begin;

	for (int i = 0; i < TX_ALL; i++) {
		end += p->rec->stage[i];
		if (has_tx_stage(p, i))
			at = put_pair(at, &tx_keys[i], p->rec->stage[i]);
	}
	if (p->closed && p->late.start) {
		at = put_pair(at, &key_xmit, p->late.xmit_ns);
		if (p->late.start >= end)
			at = put_pair(at, &key_gap, p->late.start - end);
	}
	return at;
}

static char *put_rx_stages(char *at, const struct packet *p)
{
	__u64 end = p->rec->id.begin;

	for (int i = 0; i < RXE_RX_STAGES; i++) {
		end += p->rec->stage[i];
		at = put_pair(at, &rx_keys[i], p->rec->stage[i]);
	}
	/* a packet whose end was no rxe_rx_done has no stages there */
	if (!p->closed || !p->late.start)
		return at;
	for (int i = 0; i < RXE_DONE_STAGES; i++) {
		if (i <= RXE_DONE_EXEC || p->late.stage[i])
			at = put_pair(at, &done_keys[i], p->late.stage[i]);
	}
	if (p->late.start >= end)
		at = put_pair(at, &key_gap, p->late.start - end);
	return at;
}

/* the others were dropped before one was looked for */
static bool has_bth(__u8 reason)
{
	return reason != DROP_NO_DEVICE && reason != DROP_NO_MEMORY && reason != DROP_SHORT;
}

static char *put_identity(char *at, const struct packet *p)
{
	const struct packet_id *id = &p->rec->id;
	bool arrival_drop = p->rec->kind == DUMP_DROP && !packet_is_tx(p);

	if (arrival_drop && !has_bth(p->rec->reason))
		return at;
	memcpy(at, opcodes[id->opcode].text, sizeof(opcodes[0].text));
	at += opcodes[id->opcode].length;
	/* a packet that was dropped on arrival has met no queue pair: the event has the BTH's */
	if (!arrival_drop)
		at = put_pair(at, &key_qpn, id->qpn);
	if (p->rec->kind != DUMP_DROP || arrival_drop)
		at = put_pair(at, &key_dqpn, arrival_drop ? id->qpn : id->dqpn);
	return put_pair(at, &key_psn, id->psn);
}

static char *put_flags(char *at, const struct packet *p)
{
	__u8 flags = p->rec->id.flags | (p->closed && p->rec->kind == DUMP_RX ? p->late.flags : 0);

	if (flags & RXE_FLAG_SWITCHED)
		at = put(at, " switched=1");
	if (flags & RXE_FLAG_LOOPBACK)
		at = put(at, " loopback=1");
	if (p->link_made)
		at = put(at, " link=made");
	if (p->drop)
		at = put(put(at, " drop="), drop_name(p->drop));
	return at;
}

#define ETHERTYPE_ROCE_V1 0x8915

char *packet_text(char *at, const struct packet *p)
{
	at = put(at, packet_is_tx(p) ? " dir=tx" : " dir=rx");
	at = put(at, p->rec->protocol == ETHERTYPE_ROCE_V1 ? " net=v1" : " net=v2");
	at = put_identity(at, p);
	if (p->rec->kind == DUMP_TX)
		at = put_tx_stages(at, p);
	else if (p->rec->kind == DUMP_RX)
		at = put_rx_stages(at, p);
	return put_flags(at, p);
}
