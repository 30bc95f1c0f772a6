/* SPDX-License-Identifier: GPL-2.0-only */
/* The rxe devices with packets: the file's interfaces. */
#ifndef DUMP_INTERFACES_H
#define DUMP_INTERFACES_H

#include <linux/types.h>
#include <stdbool.h>

#include "packet_text.h"
#include "rdma_dev.h"

#define MAX_INTERFACES 64

struct interface {
	__u32 dev; /* index of the RDMA device; ~0: of none */
	char name[RDMA_DEV_NAME_LEN];
	char netdev[64];
	bool has_mac;
	__u8 mac[6];
	char prefix[PACKET_PREFIX_MAX]; /* of its packets' comments */
	size_t prefix_length;
	__u64 written[DUMP_KINDS];
};

struct interfaces {
	const char *node;
	struct interface at[MAX_INTERFACES];
	int count;
};

/*
 * Number of the device's interface. Adds a new one, named "ib<index>" if the device was deleted.
 * When all places are taken, it is the last one.
 */
int interfaces_get(struct interfaces *all, __u32 dev);
/* The devices there are now. */
void interfaces_add_present(struct interfaces *all);

#endif /* DUMP_INTERFACES_H */
