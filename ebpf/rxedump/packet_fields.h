/* SPDX-License-Identifier: GPL-2.0-only */
/* Fields of a frame by tshark's names. */
#ifndef RXEDUMP_PACKET_FIELDS_H
#define RXEDUMP_PACKET_FIELDS_H

#include <linux/types.h>
#include <stdbool.h>

/* where the headers of a frame begin; of those that are not in it, or were cut, -1 */
enum header {
	HEADER_FRAME,
	HEADER_ETH,
	HEADER_IP,
	HEADER_IPV6,
	HEADER_GRH,
	HEADER_UDP,
	HEADER_BTH,
	HEADER_DETH,
	HEADER_RETH,
	HEADER_ATOMICETH,
	HEADER_AETH,
	HEADER_ATOMICACKETH,
	HEADER_IMMDT,
	HEADERS
};

struct frame_headers {
	const __u8 *frame;
	int captured, length;
	int at[HEADERS];
};

/* frame: from its Ethernet header on, or from the network header of that EtherType */
void frame_headers_find(struct frame_headers *h, const void *frame, int captured, int length,
			bool has_link, __u16 protocol);

enum field_kind { FIELD_NUMBER, FIELD_ETHER, FIELD_IPV4, FIELD_IPV6, FIELD_PRESENCE };

struct field {
	const char *name;
	enum field_kind kind;
	enum header header;
	__u8 bytes;   /* of the value */
	__u8 offset;  /* in the header */
	__s8 offset2; /* of a second value, -1: there is one only */
	__u8 shift;   /* of a number, then */
	__u64 mask;   /* 0: all of it */
};

/* NULL: rxedump does not know it */
const struct field *field_find(const char *name);
/* Value `which` (0 or 1); NULL if the packet has none. */
const __u8 *field_bytes(const struct field *f, const struct frame_headers *h, int which);
__u64 field_number(const struct field *f, const struct frame_headers *h, const __u8 *bytes);

#endif /* RXEDUMP_PACKET_FIELDS_H */
