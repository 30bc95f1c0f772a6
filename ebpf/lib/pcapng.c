// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pcapng.h"

#include <stdlib.h>
#include <string.h>

enum block_type {
	INTERFACE_DESCRIPTION = 1,
	INTERFACE_STATISTICS = 5,
	ENHANCED_PACKET = 6,
	SECTION_HEADER = 0x0a0d0d0a,
};

enum option {
	OPT_ENDOFOPT = 0,
	OPT_COMMENT = 1,
	SHB_HARDWARE = 2,
	SHB_OS = 3,
	SHB_USERAPPL = 4,
	IF_NAME = 2,
	IF_DESCRIPTION = 3,
	IF_MACADDR = 6,
	IF_TSRESOL = 9,
	IF_FILTER = 11,
	EPB_FLAGS = 2,
	ISB_STARTTIME = 2,
	ISB_ENDTIME = 3,
	ISB_IFRECV = 4,
	ISB_OSDROP = 7,
	ISB_USRDELIV = 8,
};

#define BYTE_ORDER_MAGIC  0x1a2b3c4d
#define LENGTH_UNKNOWN	  (~0ull)
#define NANOSECONDS	  9 /* 10 to the -9 */
#define MAX_OPTION	  0xffff
#define PADDED(length)	  (((length) + 3) & ~(size_t)3)
#define OPTION_HEADER_LEN 4

_Bool pcapng_room(struct pcapng_buffer *b, size_t more)
{
	size_t size = b->size ? b->size : 4096;
	char *data;

	if (more <= b->size - b->length)
		return 1;
	while (size - b->length < more) {
		if (size > ~(size_t)0 / 4)
			return 0;
		size *= 2;
	}
	data = realloc(b->data, size);
	if (!data)
		return 0;
	b->data = data;
	b->size = size;
	return 1;
}

static void put(struct pcapng_buffer *b, const void *bytes, size_t length)
{
	memcpy(b->data + b->length, bytes, length);
	b->length += length;
}

static void put_u32(struct pcapng_buffer *b, __u32 value)
{
	put(b, &value, sizeof(value));
}

/* the upper half of a time is first in any byte order */
static void put_time(struct pcapng_buffer *b, __u64 ns)
{
	put_u32(b, ns >> 32);
	put_u32(b, (__u32)ns);
}

static void pad(struct pcapng_buffer *b, size_t length)
{
	static const char zeros[4];

	put(b, zeros, PADDED(length) - length);
}

static void put_option_head(struct pcapng_buffer *b, enum option code, size_t length)
{
	__u16 head[2] = {code, length};

	put(b, head, sizeof(head));
}

static void put_option(struct pcapng_buffer *b, enum option code, const void *value, size_t length)
{
	if (length > MAX_OPTION)
		length = MAX_OPTION;
	put_option_head(b, code, length);
	put(b, value, length);
	pad(b, length);
}

static void put_text(struct pcapng_buffer *b, enum option code, const char *text)
{
	if (text)
		put_option(b, code, text, strlen(text));
}

static void put_time_option(struct pcapng_buffer *b, enum option code, __u64 ns)
{
	put_option_head(b, code, sizeof(ns));
	put_time(b, ns);
}

static size_t begin_block(struct pcapng_buffer *b, enum block_type type)
{
	size_t begin = b->length;

	put_u32(b, type);
	put_u32(b, 0); /* its length, when it is known */
	return begin;
}

static void end_block(struct pcapng_buffer *b, size_t begin)
{
	__u32 length = b->length - begin + sizeof(length);

	put_u32(b, length);
	memcpy(b->data + begin + sizeof(__u32), &length, sizeof(length));
}

static void end_options(struct pcapng_buffer *b, size_t begin)
{
	put_u32(b, OPT_ENDOFOPT);
	end_block(b, begin);
}

static size_t text_room(const char *text)
{
	return text ? strlen(text) + OPTION_HEADER_LEN + 3 : 0;
}

void pcapng_section(struct pcapng_buffer *b, const struct pcapng_section *section)
{
	const __u16 version[2] = {1, 0};
	const __u64 length = LENGTH_UNKNOWN;
	size_t begin;

	if (!pcapng_room(b, PCAPNG_BLOCK_MAX + text_room(section->hardware) +
				    text_room(section->os) + text_room(section->application) +
				    text_room(section->comment)))
		return;
	begin = begin_block(b, SECTION_HEADER);
	put_u32(b, BYTE_ORDER_MAGIC);
	put(b, version, sizeof(version));
	put(b, &length, sizeof(length));
	put_text(b, SHB_HARDWARE, section->hardware);
	put_text(b, SHB_OS, section->os);
	put_text(b, SHB_USERAPPL, section->application);
	put_text(b, OPT_COMMENT, section->comment);
	end_options(b, begin);
}

void pcapng_interface(struct pcapng_buffer *b, const struct pcapng_interface *interface)
{
	const __u16 linktype[2] = {PCAPNG_LINKTYPE_ETHERNET, 0};
	const __u8 resolution = NANOSECONDS;
	size_t begin;

	if (!pcapng_room(b, PCAPNG_BLOCK_MAX + text_room(interface->name) +
				    text_room(interface->description) +
				    text_room(interface->filter)))
		return;
	begin = begin_block(b, INTERFACE_DESCRIPTION);
	put(b, linktype, sizeof(linktype));
	put_u32(b, interface->snap_length);
	put_text(b, IF_NAME, interface->name);
	put_text(b, IF_DESCRIPTION, interface->description);
	if (interface->mac)
		put_option(b, IF_MACADDR, interface->mac, 6);
	put_option(b, IF_TSRESOL, &resolution, sizeof(resolution));
	if (interface->filter) {
		/* its first byte is the kind of filter: 0, text */
		size_t length = strlen(interface->filter) + 1;

		put_option_head(b, IF_FILTER, length);
		put(b, "", 1);
		put(b, interface->filter, length - 1);
		pad(b, length);
	}
	end_options(b, begin);
}

/* offset of the captured length in the block */
#define CAPTURED_AT	20
#define PACKET_HEAD_LEN 28

size_t pcapng_packet_begin(struct pcapng_buffer *b, __u32 interface, __u64 ns, __u32 original)
{
	size_t begin = begin_block(b, ENHANCED_PACKET);

	put_u32(b, interface);
	put_time(b, ns);
	put_u32(b, 0); /* captured, when it is known */
	put_u32(b, original);
	return begin;
}

void pcapng_packet_end(struct pcapng_buffer *b, size_t begin, enum pcapng_direction direction,
		       const char *comment, size_t comment_length)
{
	__u32 captured = b->length - begin - PACKET_HEAD_LEN;
	const __u32 flags = direction;

	memcpy(b->data + begin + CAPTURED_AT, &captured, sizeof(captured));
	pad(b, captured);
	put_option(b, OPT_COMMENT, comment, comment_length);
	put_option(b, EPB_FLAGS, &flags, sizeof(flags));
	end_options(b, begin);
}

void pcapng_statistics(struct pcapng_buffer *b, __u32 interface, __u64 now_ns,
		       const struct pcapng_statistics *statistics)
{
	size_t begin;

	if (!pcapng_room(b, PCAPNG_BLOCK_MAX + text_room(statistics->comment)))
		return;
	begin = begin_block(b, INTERFACE_STATISTICS);
	put_u32(b, interface);
	put_time(b, now_ns);
	put_time_option(b, ISB_STARTTIME, statistics->start_ns);
	put_time_option(b, ISB_ENDTIME, statistics->end_ns);
	put_option(b, ISB_IFRECV, &statistics->received, sizeof(__u64));
	put_option(b, ISB_OSDROP, &statistics->lost, sizeof(__u64));
	put_option(b, ISB_USRDELIV, &statistics->delivered, sizeof(__u64));
	put_text(b, OPT_COMMENT, statistics->comment);
	end_options(b, begin);
}
