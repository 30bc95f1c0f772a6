/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PINGPONG_SETTINGS_H
#define PINGPONG_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_BYTES (1u << 30)
#define MAX_COUNT 1000000000u

/* What a client asks for; the server does the same. */
struct settings {
	const char *host; /* NULL: this is the server */
	const char *port;
	const char *device; /* a verbs device; NULL: messages go over TCP */
	uint32_t gid_index;
	uint32_t ib_port;
	uint32_t ack_timeout; /* exponent, as in the InfiniBand specification, 11.2.4.2 */
	uint32_t path_mtu;    /* bytes; 0: the largest that the port allows */
	uint32_t size;	      /* bytes of a message */
	uint32_t count;	      /* messages that the client sends */
	bool stream;	      /* the server answers once, at the end */
	bool poll;	      /* spin instead of sleeping */
};

/* Parse the command line. Returns 0, or the exit status plus 1. */
int settings_parse(struct settings *settings, int argc, char **argv);

#endif /* PINGPONG_SETTINGS_H */
