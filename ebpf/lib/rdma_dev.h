/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RDMA devices by index and name, from the kernel by netlink (RDMA_NLDEV_CMD_GET). */
#ifndef ROCELAB_RDMA_DEV_H
#define ROCELAB_RDMA_DEV_H

#include <linux/types.h>
#include <stddef.h>

#define RDMA_DEV_NAME_LEN 64 /* IB_DEVICE_NAME_MAX */

struct rdma_dev {
	__u32 index;
	char name[RDMA_DEV_NAME_LEN];
};

/* Up to max devices. Returns how many, or a negative errno. */
int rdma_dev_list(struct rdma_dev *devs, size_t max);
/* The name of a device as it is now, or "ibINDEX" if it is gone; returns it. */
const char *rdma_dev_name(__u32 index, char name[RDMA_DEV_NAME_LEN]);

#endif /* ROCELAB_RDMA_DEV_H */
