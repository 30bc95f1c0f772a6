/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Classic pcap, nanoseconds, link type Ethernet (draft-ietf-opsawg-pcap). */
#ifndef LINKTAP_PCAP_H
#define LINKTAP_PCAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define PCAP_FILE_BYTES	  24 /* the head of the file */
#define PCAP_RECORD_BYTES 16 /* the head of a frame */

/* both return false when the file could not be written; errno says why */
bool pcap_begin(FILE *file, uint32_t snaplen);
bool pcap_frame(FILE *file, const struct timespec *when, const void *frame, uint32_t captured,
		uint32_t length);

#endif /* LINKTAP_PCAP_H */
