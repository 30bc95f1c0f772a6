/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Count frames that are not kept, as tools/rocelab's frame_counts.rs counts those that are. */
#ifndef LINKTAP_COUNT_H
#define LINKTAP_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_PORTS	256
#define MAX_CONNECTIONS 64
#define MAX_KEY		36 /* two IPv6 addresses and two ports */

/* TCP between two ports; what does not fit into the table is between ports 0 and 0 */
struct tcp_count {
	uint16_t low, high;
	bool iwarp;
	uint64_t frames, data, data_bytes, payload_bytes;
};

/* a TCP connection that began with MPA: both ends, the smaller first */
struct connection {
	uint8_t ends[MAX_KEY];
	size_t length;
};

struct counts {
	uint64_t frames, bytes;
	uint64_t roce_v1, roce_v2, roce_data, roce_data_bytes, roce_payload_bytes;
	uint64_t other, undecoded;
	struct tcp_count tcp[MAX_PORTS];
	size_t ports;
	struct connection mpa[MAX_CONNECTIONS];
	size_t connections;
};

/*
 * `kept`: the frame is in the file. Only what iWARP's later frames are recognized by is noted
 * then. `captured` bytes of the frame are there, it was `length` bytes long.
 */
void count_frame(struct counts *counts, const uint8_t *frame, size_t captured, uint32_t length,
		 bool kept);

void count_print(const struct counts *counts, FILE *out);

#endif /* LINKTAP_COUNT_H */
