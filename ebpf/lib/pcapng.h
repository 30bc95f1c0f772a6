/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Blocks of a pcapng file (draft-ietf-opsawg-pcapng), appended to a buffer in this machine's byte
 * order. Times are nanoseconds (if_tsresol 9).
 */
#ifndef ROCELAB_PCAPNG_H
#define ROCELAB_PCAPNG_H

#include <linux/types.h>
#include <stddef.h>

#define PCAPNG_LINKTYPE_ETHERNET 1

/* the first two bits of epb_flags */
enum pcapng_direction { PCAPNG_UNKNOWN, PCAPNG_INBOUND, PCAPNG_OUTBOUND };

struct pcapng_buffer {
	char *data;
	size_t length, size;
};

/*
 * Make room for more bytes. False: out of memory, and nothing has changed. The functions below need
 * no check if there is room for PCAPNG_BLOCK_MAX and for what they are given.
 */
_Bool pcapng_room(struct pcapng_buffer *b, size_t more);
/* the maximum length of a block without its packet, comment and names */
#define PCAPNG_BLOCK_MAX 256

struct pcapng_section {
	const char *hardware, *os, *application, *comment; /* NULL: left out */
};
void pcapng_section(struct pcapng_buffer *b, const struct pcapng_section *section);

struct pcapng_interface {
	const char *name, *description, *filter; /* NULL: left out */
	__u32 snap_length;			 /* 0: whole packets */
	const __u8 *mac;			 /* 6 bytes; NULL: left out */
};
void pcapng_interface(struct pcapng_buffer *b, const struct pcapng_interface *interface);

/*
 * A packet: begin, append its captured bytes to b->data, end. So the length need not be known in
 * advance. Returns the offset of the block.
 */
size_t pcapng_packet_begin(struct pcapng_buffer *b, __u32 interface, __u64 ns, __u32 original);
void pcapng_packet_end(struct pcapng_buffer *b, size_t begin, enum pcapng_direction direction,
		       const char *comment, size_t comment_length);

struct pcapng_statistics {
	__u64 start_ns, end_ns;
	__u64 received;	 /* packets to be recorded */
	__u64 lost;	 /* those not in the file */
	__u64 delivered; /* those in the file */
	const char *comment;
};
void pcapng_statistics(struct pcapng_buffer *b, __u32 interface, __u64 now_ns,
		       const struct pcapng_statistics *statistics);

#endif /* ROCELAB_PCAPNG_H */
