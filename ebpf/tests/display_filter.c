// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: display_filter FILTER < PCAP
 * Print the numbers of the frames that pass, as `tshark -Y FILTER -T fields -e frame.number` does:
 * tests/unit/ebpf/test_display_filter.py compares them. Reads pcap of this machine's byte order.
 */
#include <stdio.h>
#include <string.h>

#include "display_filter.h"

int main(int argc, char **argv)
{
	static struct display_filter filter;
	static __u8 frame[1 << 18];
	__u32 head[6], packet[4];

	if (argc != 2 || !display_filter_parse(&filter, argv[1])) {
		printf("%s\n", argc == 2 ? filter.error : "usage");
		return 2;
	}
	if (fread(head, sizeof(head), 1, stdin) != 1)
		return 1;
	for (int number = 1; fread(packet, sizeof(packet), 1, stdin) == 1; number++) {
		struct frame_headers headers;

		if (packet[2] > sizeof(frame) || fread(frame, 1, packet[2], stdin) != packet[2])
			return 1;
		frame_headers_find(&headers, frame, packet[2], packet[3], true, 0);
		if (display_filter_passes(&filter, &headers))
			printf("%d\n", number);
	}
	return 0;
}
