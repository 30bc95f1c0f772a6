/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ethernet headers for frames without one: sent packets that no device has seen, and looped back
 * ones. The best guess is the header of an earlier frame to the same destination.
 */
#ifndef LINK_HEADER_H
#define LINK_HEADER_H

#include <stdbool.h>

#include "dump_interfaces.h"
#include "rxedump.h"

#define MAX_LINKS 256
struct links {
	struct link_known {
		__u32 dev;
		__u8 to[16]; /* IPv4: the first four; GID of RoCE v1 */
		__u8 link[LINK_LEN];
	} known[MAX_LINKS];
	int count, next;
};

/* This sent frame, from its network header on, had this link header. */
void link_learn(struct links *links, const struct dump_record *rec, const __u8 link[LINK_LEN]);
/* A known or likely header; other addresses are zero. */
void link_make(const struct links *links, const struct interface *interface,
	       const struct dump_record *rec, bool sent, __u8 link[LINK_LEN]);
/*
 * Compute the IPv4 header checksum, which the network stack adds after the driver. frame holds
 * `captured` bytes from its network header on.
 */
void link_ipv4_checksum(__u8 *frame, size_t captured);

#endif /* LINK_HEADER_H */
