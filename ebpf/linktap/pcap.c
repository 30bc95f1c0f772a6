// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pcap.h"

#define MAGIC_NANOSECONDS 0xa1b23c4d
#define LINKTYPE_ETHERNET 1

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	int32_t zone;
	uint32_t accuracy;
	uint32_t snaplen;
	uint32_t linktype;
};

struct frame_header {
	uint32_t seconds;
	uint32_t nanoseconds;
	uint32_t captured;
	uint32_t length;
};

bool pcap_begin(FILE *file, uint32_t snaplen)
{
	struct file_header header = {
		.magic = MAGIC_NANOSECONDS,
		.major = 2,
		.minor = 4,
		.snaplen = snaplen,
		.linktype = LINKTYPE_ETHERNET,
	};

	return fwrite(&header, sizeof(header), 1, file) == 1;
}

bool pcap_frame(FILE *file, const struct timespec *when, const void *frame, uint32_t captured,
		uint32_t length)
{
	struct frame_header header = {
		.seconds = when->tv_sec,
		.nanoseconds = when->tv_nsec,
		.captured = captured,
		.length = length,
	};

	return fwrite(&header, sizeof(header), 1, file) == 1 &&
	       fwrite(frame, captured, 1, file) == 1;
}
