// SPDX-License-Identifier: GPL-2.0-only
/* Written out by hand rather than with printf: it runs for every packet. */
#include "packet_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "bth.h"
#include "drop.h"

#define NAME_MAX_BYTES 128

/* keys with their lengths, padded to be copied as a whole, which takes fewer instructions */
struct key {
	char text[15];
	__u8 length;
};
#define KEY(word) {" " word "=", sizeof(" " word "=") - 1}

struct text_stage {
	struct key key;
	enum rxe_passed passed;
	bool on_stock;
};
#define TEXT_STAGE(id, name, capsule, passed, stock) {KEY(name "_ns"), RXE_PASSED_##passed, stock},

static const struct text_stage tx_stages[] = {TX_PACKET_STAGES(TEXT_STAGE)};
static const struct text_stage xmit_stages[] = {START_XMIT_STAGES(TEXT_STAGE)};
static const struct text_stage rx_stages[] = {RX_PACKET_STAGES(TEXT_STAGE)};
static const struct text_stage done_stages[] = {RX_DONE_STAGES(TEXT_STAGE)};
static const struct key key_gap = KEY("gap_ns"), key_qpn = KEY("qpn"), key_dqpn = KEY("dqpn"),
			key_psn = KEY("psn");

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

/* writes the key with its padding: the buffer has room for it */
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

/* " op=NAME" of all opcodes; a number if the specification has no name: "0x3f" */
static struct {
	char text[63];
	__u8 length;
	bool response;
} opcodes[256];

static __attribute__((constructor)) void fill_opcodes(void)
{
	for (int op = 0; op < 256; op++) {
		int n;

		if (bth_name(op))
			n = snprintf(opcodes[op].text, sizeof(opcodes[op].text), " op=%s",
				     bth_name(op));
		else
			n = snprintf(opcodes[op].text, sizeof(opcodes[op].text), " op=0x%02x", op);
		opcodes[op].length = n;
		opcodes[op].response = bth_is_response(op);
	}
}

/* a stage that this packet does not pass, or that the driver cannot show, reads 0 */
static bool has_stage(const struct packet *p, const struct text_stage *stage, __u32 ns)
{
	if (p->stock && !stage->on_stock)
		return false;
	if (stage->passed == RXE_PASSED_REQUESTS)
		return !opcodes[p->rec->id.opcode].response;
	return ns || stage->passed != RXE_PASSED_SOME;
}

/* *end: when the last of them was over, if the first began then */
static char *put_stages(char *at, const struct packet *p, const struct text_stage *stages,
			const __u32 *ns, int n, __u64 *end)
{
	for (int i = 0; i < n; i++) {
		*end += ns[i];
		if (has_stage(p, &stages[i], ns[i]))
			at = put_pair(at, &stages[i].key, ns[i]);
	}
	return at;
}

/* between the two events of a packet */
static char *put_gap(char *at, const struct packet *p, __u64 end)
{
	return p->late.start >= end ? put_pair(at, &key_gap, p->late.start - end) : at;
}

static char *put_tx_stages(char *at, const struct packet *p)
{
	__u64 end = p->rec->id.begin;

	at = put_stages(at, p, tx_stages, p->rec->stage, RXE_TX_STAGES, &end);
	if (!p->closed || !p->late.start)
		return at;
	return put_gap(put_pair(at, &xmit_stages[0].key, p->late.xmit_ns), p, end);
}

static char *put_rx_stages(char *at, const struct packet *p)
{
	__u64 end = p->rec->id.begin, done = 0;

	at = put_stages(at, p, rx_stages, p->rec->stage, RXE_RX_STAGES, &end);
	/* a packet that did not end in rxe_rx_done has no such stages */
	if (!p->closed || !p->late.start)
		return at;
	at = put_stages(at, p, done_stages, p->late.stage, RXE_DONE_STAGES, &done);
	return put_gap(at, p, end);
}

/* for other reasons the packet is dropped before the BTH is read */
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
	/* a packet dropped on arrival has no queue pair: the event has the BTH's number */
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
