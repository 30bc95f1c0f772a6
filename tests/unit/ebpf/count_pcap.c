// SPDX-License-Identifier: GPL-2.0-only
/* count_pcap FILE KEPT: count a little-endian pcap's frames after the first KEPT, as linktap does */
#include <stdlib.h>

#include "count.h"

int main(int argc, char **argv)
{
	static struct counts counts;
	static uint8_t frame[1 << 18];
	FILE *file = argc == 3 ? fopen(argv[1], "r") : NULL;
	long kept = file ? atol(argv[2]) : 0;
	uint32_t head[4];

	if (!file || fseek(file, 24, SEEK_SET))
		return 1;
	for (long i = 0; fread(head, sizeof(head), 1, file) == 1; i++) {
		if (head[2] > sizeof(frame) || fread(frame, 1, head[2], file) != head[2])
			return 1;
		count_frame(&counts, frame, head[2], head[3], i < kept);
	}
	count_print(&counts, stdout);
	return 0;
}
