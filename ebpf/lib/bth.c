// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bth.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* lengths of headers, bytes (chapter 9) */
enum {
	BTH_LEN = 12,
	RDETH = 4,
	DETH = 8,
	XRCETH = 4,
	RETH = 16,
	AETH = 4,
	ATOMIC_ETH = 28,
	ATOMIC_ACK_ETH = 8,
	IMMDT = 4,
	IETH = 4,
	FETH = 4,
	ICRC = 4,
};

#define OP(service, code, name, class) \
	{BTH_##service << 5 | (code), BTH_##class, #service "_" #name}

/* what RC and XRC share with RD; UC has the first two groups */
#define SENDS(s)                                                                           \
	OP(s, 0x00, SEND_FIRST, SEND), OP(s, 0x01, SEND_MIDDLE, SEND),                     \
		OP(s, 0x02, SEND_LAST, SEND), OP(s, 0x03, SEND_LAST_WITH_IMMEDIATE, SEND), \
		OP(s, 0x04, SEND_ONLY, SEND), OP(s, 0x05, SEND_ONLY_WITH_IMMEDIATE, SEND)
#define WRITES(s)                                                                              \
	OP(s, 0x06, RDMA_WRITE_FIRST, RDMA_WRITE), OP(s, 0x07, RDMA_WRITE_MIDDLE, RDMA_WRITE), \
		OP(s, 0x08, RDMA_WRITE_LAST, RDMA_WRITE),                                      \
		OP(s, 0x09, RDMA_WRITE_LAST_WITH_IMMEDIATE, RDMA_WRITE),                       \
		OP(s, 0x0a, RDMA_WRITE_ONLY, RDMA_WRITE),                                      \
		OP(s, 0x0b, RDMA_WRITE_ONLY_WITH_IMMEDIATE, RDMA_WRITE)
#define READS(s)                                                            \
	OP(s, 0x0c, RDMA_READ_REQUEST, RDMA_READ_REQUEST),                  \
		OP(s, 0x0d, RDMA_READ_RESPONSE_FIRST, RDMA_READ_RESPONSE),  \
		OP(s, 0x0e, RDMA_READ_RESPONSE_MIDDLE, RDMA_READ_RESPONSE), \
		OP(s, 0x0f, RDMA_READ_RESPONSE_LAST, RDMA_READ_RESPONSE),   \
		OP(s, 0x10, RDMA_READ_RESPONSE_ONLY, RDMA_READ_RESPONSE)
#define ANSWERS_AND_ATOMICS(s)                                       \
	OP(s, 0x11, ACKNOWLEDGE, ACKNOWLEDGE),                       \
		OP(s, 0x12, ATOMIC_ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE), \
		OP(s, 0x13, COMPARE_SWAP, ATOMIC), OP(s, 0x14, FETCH_ADD, ATOMIC)
#define INVALIDATES(s) \
	OP(s, 0x16, SEND_LAST_WITH_INVALIDATE, SEND), OP(s, 0x17, SEND_ONLY_WITH_INVALIDATE, SEND)

const struct bth_opcode bth_opcodes[] = {
	SENDS(RC),
	WRITES(RC),
	READS(RC),
	ANSWERS_AND_ATOMICS(RC),
	INVALIDATES(RC),
	OP(RC, 0x1c, FLUSH, FLUSH),
	OP(RC, 0x1d, ATOMIC_WRITE, ATOMIC_WRITE),
	SENDS(UC),
	WRITES(UC),
	SENDS(RD),
	WRITES(RD),
	READS(RD),
	ANSWERS_AND_ATOMICS(RD),
	OP(RD, 0x15, RESYNC, RESYNC),
	OP(RD, 0x1c, FLUSH, FLUSH),
	OP(UD, 0x04, SEND_ONLY, SEND),
	OP(UD, 0x05, SEND_ONLY_WITH_IMMEDIATE, SEND),
	{0x81, BTH_CONGESTION, "CNP"},
	SENDS(XRC),
	WRITES(XRC),
	READS(XRC),
	ANSWERS_AND_ATOMICS(XRC),
	INVALIDATES(XRC),
};
const size_t bth_opcodes_len = sizeof(bth_opcodes) / sizeof(bth_opcodes[0]);

static const char *const class_names[] = {
	[BTH_OTHER] = "OTHER",
	[BTH_SEND] = "SEND",
	[BTH_RDMA_WRITE] = "RDMA_WRITE",
	[BTH_RDMA_READ_REQUEST] = "RDMA_READ_REQUEST",
	[BTH_RDMA_READ_RESPONSE] = "RDMA_READ_RESPONSE",
	[BTH_ACKNOWLEDGE] = "ACKNOWLEDGE",
	[BTH_ATOMIC_ACKNOWLEDGE] = "ATOMIC_ACKNOWLEDGE",
	[BTH_ATOMIC] = "ATOMIC",
	[BTH_RESYNC] = "RESYNC",
	[BTH_FLUSH] = "FLUSH",
	[BTH_ATOMIC_WRITE] = "ATOMIC_WRITE",
	[BTH_CONGESTION] = "CNP",
};

static const char *const service_names[8] = {
	[BTH_RC] = "RC", [BTH_UC] = "UC",   [BTH_RD] = "RD",
	[BTH_UD] = "UD", [BTH_CNP] = "CNP", [BTH_XRC] = "XRC",
};

enum bth_class bth_class_of(__u8 opcode)
{
	for (size_t i = 0; i < bth_opcodes_len; i++) {
		if (bth_opcodes[i].opcode == opcode)
			return bth_opcodes[i].class;
	}
	return BTH_OTHER;
}

const char *bth_name(__u8 opcode)
{
	for (size_t i = 0; i < bth_opcodes_len; i++) {
		if (bth_opcodes[i].opcode == opcode)
			return bth_opcodes[i].name;
	}
	return NULL;
}

/* extended headers of the class; the name tells first from middle, and what else is along */
static __u8 class_overhead(enum bth_class class, const char *name)
{
	bool middle = strstr(name, "_MIDDLE") != NULL;
	bool starts = strstr(name, "_FIRST") || strstr(name, "_ONLY");

	switch (class) {
	case BTH_RDMA_WRITE:
		return starts ? RETH : 0;
	case BTH_RDMA_READ_REQUEST:
		return RETH;
	case BTH_RDMA_READ_RESPONSE:
		return middle ? 0 : AETH;
	case BTH_ACKNOWLEDGE:
		return AETH;
	case BTH_ATOMIC_ACKNOWLEDGE:
		return AETH + ATOMIC_ACK_ETH;
	case BTH_ATOMIC:
		return ATOMIC_ETH;
	case BTH_FLUSH:
		return FETH + RETH;
	case BTH_ATOMIC_WRITE:
		return RETH;
	default:
		return 0;
	}
}

__u8 bth_overhead(__u8 opcode)
{
	static const __u8 service_overhead[8] = {
		[BTH_RD] = RDETH + DETH,
		[BTH_UD] = DETH,
		[BTH_XRC] = XRCETH,
	};
	enum bth_class class = bth_class_of(opcode);
	const char *name = bth_name(opcode) ?: "";
	__u8 service = service_overhead[opcode >> 5];

	/* an answer names no receive queue, and nobody's datagram key */
	if (class == BTH_ACKNOWLEDGE || class == BTH_RDMA_READ_RESPONSE ||
	    class == BTH_ATOMIC_ACKNOWLEDGE)
		service = opcode >> 5 == BTH_RD ? RDETH : 0;
	return BTH_LEN + service + class_overhead(class, name) +
	       (strstr(name, "_IMMEDIATE") ? IMMDT : 0) + (strstr(name, "_INVALIDATE") ? IETH : 0) +
	       ICRC;
}

const char *bth_class_name(unsigned int class)
{
	return class_names[class < BTH_CLASSES ? class : BTH_OTHER];
}

const char *bth_service_name(unsigned int service)
{
	return service < 8 && service_names[service] ? service_names[service] : "-";
}

bool bth_choose(const char *name, bool chosen[256])
{
	bool found = false;

	for (unsigned int op = 0; op < 256; op++) {
		const char *class = bth_class_name(bth_class_of(op));
		char with_service[64];

		snprintf(with_service, sizeof(with_service), "%s_%s", bth_service_name(op >> 5),
			 class);
		if (!strcasecmp(name, class) || !strcasecmp(name, with_service))
			found = chosen[op] = true;
	}
	for (size_t i = 0; i < bth_opcodes_len; i++) {
		if (!strcasecmp(name, bth_opcodes[i].name))
			found = chosen[bth_opcodes[i].opcode] = true;
	}
	return found;
}
