// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rdma_dev.h"

#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>

#include "rdma_netlink.h"

struct listing {
	struct rdma_dev *devs;
	size_t max, count;
};

static void add(void *context, const char *at, int left)
{
	struct listing *listing = context;
	const struct nlattr *attr;
	struct rdma_dev *dev;

	if (listing->count == listing->max)
		return;
	dev = &listing->devs[listing->count++];
	memset(dev, 0, sizeof(*dev));
	while ((attr = rdma_netlink_next(&at, &left))) {
		if (rdma_netlink_type(attr) == RDMA_NLDEV_ATTR_DEV_INDEX)
			dev->index = rdma_netlink_number(attr);
		else if (rdma_netlink_type(attr) == RDMA_NLDEV_ATTR_DEV_NAME)
			rdma_netlink_string(attr, dev->name, sizeof(dev->name));
	}
}

int rdma_dev_list(struct rdma_dev *devs, size_t max)
{
	struct listing listing = {.devs = devs, .max = max};
	int err = rdma_netlink_dump(RDMA_NLDEV_CMD_GET, RDMA_NETLINK_ALL, add, &listing);

	return err ?: (int)listing.count;
}

const char *rdma_dev_name(__u32 index, char name[RDMA_DEV_NAME_LEN])
{
	struct rdma_dev devs[64];
	int n = rdma_dev_list(devs, sizeof(devs) / sizeof(devs[0]));

	snprintf(name, RDMA_DEV_NAME_LEN, "ib%u", index);
	for (int i = 0; i < n; i++) {
		if (devs[i].index == index)
			memcpy(name, devs[i].name, RDMA_DEV_NAME_LEN);
	}
	return name;
}
