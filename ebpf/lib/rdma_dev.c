// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rdma_dev.h"

#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ATTR_LEN(attr) ((attr)->nla_len - (int)NLA_HDRLEN)

static void parse_dev(const char *at, int left, struct rdma_dev *dev)
{
	while (left >= (int)sizeof(struct nlattr)) {
		const struct nlattr *attr = (const void *)at;
		const char *data = at + NLA_HDRLEN;
		int step = NLA_ALIGN(attr->nla_len);

		if (attr->nla_len < NLA_HDRLEN || attr->nla_len > left)
			return;
		if (attr->nla_type == RDMA_NLDEV_ATTR_DEV_INDEX &&
		    ATTR_LEN(attr) >= (int)sizeof(dev->index))
			memcpy(&dev->index, data, sizeof(dev->index));
		else if (attr->nla_type == RDMA_NLDEV_ATTR_DEV_NAME && ATTR_LEN(attr) > 0)
			memcpy(dev->name, data,
			       (size_t)ATTR_LEN(attr) < sizeof(dev->name) - 1
				       ? (size_t)ATTR_LEN(attr)
				       : sizeof(dev->name) - 1);
		at += step;
		left -= step;
	}
}

/* reads one datagram of a dump; 1 at the end of the dump, 0 if more follows, or a negative errno */
static int parse_dump(const char *buffer, int len, struct rdma_dev *devs, size_t max, size_t *count)
{
	const struct nlmsghdr *h = (const void *)buffer;

	for (; NLMSG_OK(h, (unsigned int)len); h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(h))->error ?: 1;
		if (*count < max) {
			struct rdma_dev *dev = &devs[(*count)++];

			memset(dev, 0, sizeof(*dev));
			parse_dev(NLMSG_DATA(h), NLMSG_PAYLOAD(h, 0), dev);
		}
	}
	return 0;
}

int rdma_dev_list(struct rdma_dev *devs, size_t max)
{
	struct nlmsghdr request = {
		.nlmsg_len = NLMSG_LENGTH(0),
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP | NLM_F_ACK,
	};
	struct timeval patience = {.tv_sec = 5};
	char buffer[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	size_t count = 0;
	int fd, end = 0;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(fd, &request, request.nlmsg_len, 0) < 0)
		end = -errno;
	while (!end) {
		ssize_t len = recv(fd, buffer, sizeof(buffer), 0);

		end = len < 0 ? -errno : parse_dump(buffer, len, devs, max, &count);
	}
	close(fd);
	return end < 0 ? end : (int)count;
}
