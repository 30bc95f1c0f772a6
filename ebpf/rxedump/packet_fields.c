// SPDX-License-Identifier: GPL-2.0-only
#include "packet_fields.h"

#include <stddef.h>
#include <string.h>

#include "opcodes.h"

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_ROCE_V1 = 0x8915,
	PROTOCOL_UDP = 17,
	PORT_ROCE_V2 = 4791,
	ETH_LEN = 14,
	IPV6_LEN = 40,
	UDP_LEN = 8,
	BTH_LEN = 12,
};

/* which extended headers follow the BTH of an opcode: a bit each, in the order on the wire */
enum {
	LEN_RDETH = 1 << 0,
	LEN_DETH = 1 << 1,
	LEN_XRCETH = 1 << 2,
	LEN_FETH = 1 << 3,
	LEN_RETH = 1 << 4,
	LEN_ATOMICETH = 1 << 5,
	LEN_AETH = 1 << 6,
	LEN_ATOMICACKETH = 1 << 7,
	LEN_IMMDT = 1 << 8,
	LEN_IETH = 1 << 9,
	LEN_CNP = 1 << 10,
};

static const __u16 extended[256] = {
#define OPCODE(code, name, class_id, headers) [code] = headers,
	OPCODES(OPCODE)};

/* by bit; header: HEADERS for those without fields here */
static const struct {
	__u8 bytes;
	enum header header;
} extensions[] = {
	{4, HEADERS},	   {8, HEADER_DETH},	   {4, HEADERS},     {4, HEADERS},
	{16, HEADER_RETH}, {28, HEADER_ATOMICETH}, {4, HEADER_AETH}, {8, HEADER_ATOMICACKETH},
	{4, HEADER_IMMDT}, {4, HEADERS},	   {16, HEADERS},
};

#define NUMBER(name, header, bytes, offset) \
	{name, FIELD_NUMBER, HEADER_##header, bytes, offset, -1, 0, 0}
#define BITS(name, header, bytes, offset, shift, mask) \
	{name, FIELD_NUMBER, HEADER_##header, bytes, offset, -1, shift, mask}
#define ADDRESS(name, kind, header, bytes, offset, offset2) \
	{name, FIELD_##kind, HEADER_##header, bytes, offset, offset2, 0, 0}
#define PRESENCE(name, header, bytes) {name, FIELD_PRESENCE, HEADER_##header, bytes, 0, -1, 0, 0}

static const struct field fields[] = {
	NUMBER("frame.len", FRAME, 0, 0),
	PRESENCE("eth", ETH, 14),
	ADDRESS("eth.addr", ETHER, ETH, 6, 0, 6),
	ADDRESS("eth.dst", ETHER, ETH, 6, 0, -1),
	ADDRESS("eth.src", ETHER, ETH, 6, 6, -1),
	NUMBER("eth.type", ETH, 2, 12),
	PRESENCE("ip", IP, 20),
	ADDRESS("ip.addr", IPV4, IP, 4, 12, 16),
	ADDRESS("ip.dst", IPV4, IP, 4, 16, -1),
	BITS("ip.dsfield.dscp", IP, 1, 1, 2, 0x3f),
	BITS("ip.dsfield.ecn", IP, 1, 1, 0, 3),
	NUMBER("ip.len", IP, 2, 2),
	ADDRESS("ip.src", IPV4, IP, 4, 12, -1),
	NUMBER("ip.ttl", IP, 1, 8),
	PRESENCE("ipv6", IPV6, 40),
	ADDRESS("ipv6.addr", IPV6, IPV6, 16, 8, 24),
	ADDRESS("ipv6.dst", IPV6, IPV6, 16, 24, -1),
	BITS("ipv6.flow", IPV6, 4, 0, 0, 0xfffff),
	NUMBER("ipv6.hlim", IPV6, 1, 7),
	ADDRESS("ipv6.src", IPV6, IPV6, 16, 8, -1),
	PRESENCE("udp", UDP, 8),
	NUMBER("udp.dstport", UDP, 2, 2),
	NUMBER("udp.length", UDP, 2, 4),
	{"udp.port", FIELD_NUMBER, HEADER_UDP, 2, 0, 2, 0, 0},
	NUMBER("udp.srcport", UDP, 2, 0),
	PRESENCE("infiniband", BTH, 12),
	PRESENCE("infiniband.aeth", AETH, 4),
	BITS("infiniband.aeth.msn", AETH, 4, 0, 0, 0xffffff),
	NUMBER("infiniband.aeth.syndrome", AETH, 1, 0),
	BITS("infiniband.aeth.syndrome.opcode", AETH, 1, 0, 5, 3),
	PRESENCE("infiniband.atomicacketh", ATOMICACKETH, 8),
	NUMBER("infiniband.atomicacketh.origremdt", ATOMICACKETH, 8, 0),
	PRESENCE("infiniband.atomiceth", ATOMICETH, 28),
	NUMBER("infiniband.atomiceth.cmpdt", ATOMICETH, 8, 20),
	NUMBER("infiniband.atomiceth.swapdt", ATOMICETH, 8, 12),
	PRESENCE("infiniband.bth", BTH, 12),
	BITS("infiniband.bth.a", BTH, 1, 8, 7, 1),
	BITS("infiniband.bth.destqp", BTH, 4, 4, 0, 0xffffff),
	BITS("infiniband.bth.m", BTH, 1, 1, 6, 1),
	NUMBER("infiniband.bth.opcode", BTH, 1, 0),
	NUMBER("infiniband.bth.p_key", BTH, 2, 2),
	BITS("infiniband.bth.padcnt", BTH, 1, 1, 4, 3),
	BITS("infiniband.bth.psn", BTH, 4, 8, 0, 0xffffff),
	BITS("infiniband.bth.se", BTH, 1, 1, 7, 1),
	BITS("infiniband.bth.tver", BTH, 1, 1, 0, 0xf),
	PRESENCE("infiniband.deth", DETH, 8),
	NUMBER("infiniband.deth.q_key", DETH, 4, 0),
	BITS("infiniband.deth.srcqp", DETH, 4, 4, 0, 0xffffff),
	PRESENCE("infiniband.grh", GRH, 40),
	ADDRESS("infiniband.grh.dgid", IPV6, GRH, 16, 24, -1),
	ADDRESS("infiniband.grh.sgid", IPV6, GRH, 16, 8, -1),
	PRESENCE("infiniband.immdt", IMMDT, 4),
	PRESENCE("infiniband.reth", RETH, 16),
	NUMBER("infiniband.reth.dmalen", RETH, 4, 12),
	NUMBER("infiniband.reth.r_key", RETH, 4, 8),
	NUMBER("infiniband.reth.va", RETH, 8, 0),
};

static unsigned int big_endian_16(const __u8 *at)
{
	return at[0] << 8 | at[1];
}

/* the first `bytes` of a header are there */
static bool has(const struct frame_headers *h, int at, int bytes)
{
	return at >= 0 && at + bytes <= h->captured;
}

static void find_extended(struct frame_headers *h, int at)
{
	__u16 bits = extended[h->frame[at]];

	at += BTH_LEN;
	for (unsigned int i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
		if (!(bits & 1 << i))
			continue;
		if (extensions[i].header != HEADERS && has(h, at, extensions[i].bytes))
			h->at[extensions[i].header] = at;
		at += extensions[i].bytes;
	}
}

static void find_bth(struct frame_headers *h, int at)
{
	if (!has(h, at, BTH_LEN))
		return;
	h->at[HEADER_BTH] = at;
	find_extended(h, at);
}

static void find_udp(struct frame_headers *h, int at)
{
	if (!has(h, at, UDP_LEN))
		return;
	h->at[HEADER_UDP] = at;
	if (big_endian_16(h->frame + at + 2) == PORT_ROCE_V2)
		find_bth(h, at + UDP_LEN);
}

void frame_headers_find(struct frame_headers *h, const void *frame, int captured, int length,
			bool has_link, __u16 protocol)
{
	int at = 0;

	h->frame = frame;
	h->captured = captured;
	h->length = length;
	for (int i = 0; i < HEADERS; i++)
		h->at[i] = -1;
	h->at[HEADER_FRAME] = 0;
	if (has_link && !has(h, 0, ETH_LEN))
		return;
	if (has_link) {
		h->at[HEADER_ETH] = 0;
		protocol = big_endian_16(h->frame + 12);
		at = ETH_LEN;
	}
	if (protocol == ETHERTYPE_IPV4 && has(h, at, 20)) {
		h->at[HEADER_IP] = at;
		if (h->frame[at + 9] == PROTOCOL_UDP &&
		    !(big_endian_16(h->frame + at + 6) & 0x1fff))
			find_udp(h, at + (h->frame[at] & 0xf) * 4);
	} else if (protocol == ETHERTYPE_IPV6 && has(h, at, IPV6_LEN)) {
		h->at[HEADER_IPV6] = at;
		if (h->frame[at + 6] == PROTOCOL_UDP)
			find_udp(h, at + IPV6_LEN);
	} else if (protocol == ETHERTYPE_ROCE_V1 && has(h, at, IPV6_LEN)) {
		h->at[HEADER_GRH] = at;
		find_bth(h, at + IPV6_LEN);
	}
}

const struct field *field_find(const char *name)
{
	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!strcmp(fields[i].name, name))
			return &fields[i];
	}
	return NULL;
}

const __u8 *field_bytes(const struct field *f, const struct frame_headers *h, int which)
{
	int at = h->at[f->header];

	if (at < 0 || (which && f->offset2 < 0))
		return NULL;
	at += which ? f->offset2 : f->offset;
	return has(h, at, f->bytes) ? h->frame + at : NULL;
}

__u64 field_number(const struct field *f, const struct frame_headers *h, const __u8 *bytes)
{
	__u64 number = 0;

	if (f->header == HEADER_FRAME)
		return h->length;
	for (int i = 0; i < f->bytes; i++)
		number = number << 8 | bytes[i];
	number >>= f->shift;
	return f->mask ? number & f->mask : number;
}
