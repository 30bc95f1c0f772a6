/* SPDX-License-Identifier: GPL-2.0-only */
/* The comment of a packet: docs/formats/rxedump.md has its grammar. */
#ifndef RXEDUMP_PACKET_TEXT_H
#define RXEDUMP_PACKET_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "rxedump.h"

/* all that is known about a packet; rec->frame is not used */
struct packet {
	const struct dump_record *rec;
	struct dump_late late;
	bool closed;	/* late holds its last stages */
	bool link_made; /* the link header is a guess */
	bool stock;	/* the stages are those of the stock driver's functions */
	__u32 drop;	/* the reason, 0: none */
};

/* the longest comment, its prefix included */
#define PACKET_TEXT_MAX 2048
/* the longest prefix, which all packets of a device share */
#define PACKET_PREFIX_MAX 1024

bool packet_is_tx(const struct packet *p);
/* "rocelab/1 node=… dev=…"; returns its length. Names longer than 128 bytes are cut. */
size_t packet_prefix(char prefix[PACKET_PREFIX_MAX], const char *node, const char *dev);
/* Escape a value as in a comment, with a terminating zero. */
void packet_escape(char escaped[PACKET_PREFIX_MAX], const char *value);
/* Write the rest, from " dir=" on, to `at`. Returns its end; adds no zero. */
char *packet_text(char *at, const struct packet *p);

#endif /* RXEDUMP_PACKET_TEXT_H */
