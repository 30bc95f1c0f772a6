/* SPDX-License-Identifier: GPL-2.0-only */
/* The packets of one message at this node: its requests, sent again or not, and their answers. */
#ifndef RXEDUMP_MESSAGE_FOLLOW_H
#define RXEDUMP_MESSAGE_FOLLOW_H

#include "packet_text.h"

struct follow {
	__u32 qpn;    /* local; 0: follow nothing */
	bool by_psn;  /* the message that begins with psn, sent or received */
	__u32 psn;    /* else: */
	__u32 number; /* the message that the queue pair sends as its number-th from now on */

	__u32 seen, newest; /* messages sent until it is found, and the PSN of the newest */
	bool found, sent;
	__u32 first, last; /* PSNs of its requests, as far as they have been seen */
	bool complete;	   /* last is the last */
	bool is_read, read;
	__u32 read_last;   /* PSN of the last answer to a READ, when read */
	bool acknowledged; /* by the acknowledgment of a later packet */
};

/* "QPN:PSN" or "QPN:#NUMBER"; false: it is neither */
bool follow_parse(struct follow *f, const char *text);
/* Whether a packet, in the order of events, belongs to the message. */
bool follow_takes(struct follow *f, const struct packet *p);

#endif /* RXEDUMP_MESSAGE_FOLLOW_H */
