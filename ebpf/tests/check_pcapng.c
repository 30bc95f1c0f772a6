// SPDX-License-Identifier: GPL-2.0-only
/* The pcapng writer: blocks byte for byte, padding, and room. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "pcapng.h"

/* a block's two length fields agree with its length */
static void check_frame(const struct pcapng_buffer *b, size_t begin, __u32 type)
{
	__u32 found_type, length, again;

	memcpy(&found_type, b->data + begin, 4);
	memcpy(&length, b->data + begin + 4, 4);
	memcpy(&again, b->data + b->length - 4, 4);
	CHECK(found_type == type, "0x%x", found_type);
	CHECK(length == b->length - begin && again == length && length % 4 == 0,
	      "%u, %u, of %zu bytes", length, again, b->length - begin);
}

static void check_section(struct pcapng_buffer *b)
{
	static const __u32 expected[] = {
		0x0a0d0d0a, 52, 0x1a2b3c4d, 1, ~0u, ~0u, 4 | 5 << 16,
	};
	const struct pcapng_section section = {.application = "tests", .comment = "c"};
	size_t begin = b->length;

	pcapng_section(b, &section);
	check_frame(b, begin, 0x0a0d0d0a);
	CHECK(!memcmp(b->data + begin, expected, sizeof(expected)), "head");
	CHECK(!memcmp(b->data + begin + sizeof(expected), "tests\0\0\0\1\0\1\0c\0\0\0\0\0\0\0", 20),
	      "options");
}

static void check_interface(struct pcapng_buffer *b)
{
	static const __u8 mac[6] = {2, 0, 0, 0, 0, 1};
	const struct pcapng_interface interface = {
		.name = "rxe0", .filter = "tx", .snap_length = 96, .mac = mac};
	/* name; address, padded; resolution 9; filter, whose first byte says that it is text */
	static const char options[] = "\2\0\4\0rxe0\6\0\6\0\2\0\0\0\0\1\0\0\11\0\1\0\11\0\0\0"
				      "\13\0\3\0\0tx\0\0\0\0\0";
	size_t begin = b->length;
	__u32 head[2];

	pcapng_interface(b, &interface);
	check_frame(b, begin, 1);
	memcpy(head, b->data + begin + 8, sizeof(head));
	CHECK(head[0] == 1 && head[1] == 96, "link type %u, snap length %u", head[0], head[1]);
	CHECK(!memcmp(b->data + begin + 16, options, sizeof(options) - 1), "options");
}

static void check_packet(struct pcapng_buffer *b, size_t captured)
{
	static const char bytes[8] = "abcdefgh";
	const __u64 ns = 0x123456789abcdef0;
	size_t begin, padded = (captured + 3) & ~(size_t)3;
	__u32 head[7];

	CHECK(pcapng_room(b, PCAPNG_BLOCK_MAX + captured + 3), "room");
	begin = pcapng_packet_begin(b, 3, ns, 1000);
	memcpy(b->data + b->length, bytes, captured);
	b->length += captured;
	pcapng_packet_end(b, begin, PCAPNG_OUTBOUND, "a=b", 3);
	check_frame(b, begin, 6);
	memcpy(head, b->data + begin, sizeof(head));
	CHECK(head[2] == 3 && head[3] == ns >> 32 && head[4] == (__u32)ns && head[5] == captured &&
		      head[6] == 1000,
	      "interface %u, captured %u of %u", head[2], head[5], head[6]);
	CHECK(!memcmp(b->data + begin + 28, bytes, captured), "frame");
	CHECK(!memcmp(b->data + begin + 28 + padded, "\1\0\3\0a=b\0\2\0\4\0\2\0\0\0\0\0\0\0", 20),
	      "options after %zu bytes", captured);
}

static void check_statistics(struct pcapng_buffer *b)
{
	const struct pcapng_statistics statistics = {
		.start_ns = 1ull << 32, .end_ns = 2, .received = 30, .lost = 10, .delivered = 20};
	/* the upper half of a time is first; counts are plain 64-bit numbers */
	static const __u32 expected[] = {
		5,  96, 7,	     0,	 5, 2 | 8 << 16, 1,  0, 3 | 8 << 16, 0, 2, 4 | 8 << 16,
		30, 0,	7 | 8 << 16, 10, 0, 8 | 8 << 16, 20, 0, 0,
	};
	size_t begin = b->length;

	pcapng_statistics(b, 7, 5, &statistics);
	check_frame(b, begin, 5);
	CHECK(b->length - begin == sizeof(expected) + 4, "%zu bytes", b->length - begin);
	CHECK(!memcmp(b->data + begin + 8, expected + 2, sizeof(expected) - 8), "body");
}

int main(void)
{
	struct pcapng_buffer b = {};

	check_section(&b);
	check_interface(&b);
	for (size_t captured = 0; captured <= 8; captured++)
		check_packet(&b, captured);
	check_statistics(&b);
	CHECK(!pcapng_room(&b, ~(size_t)0 >> 1), "memory without end");
	free(b.data);
	return check_end("pcapng");
}
