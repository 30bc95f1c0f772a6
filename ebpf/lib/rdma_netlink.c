// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rdma_netlink.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

const struct nlattr *rdma_netlink_next(const char **at, int *left)
{
	const struct nlattr *attr = (const void *)*at;
	int step;

	if (*left < (int)sizeof(*attr) || attr->nla_len < NLA_HDRLEN || attr->nla_len > *left)
		return NULL;
	step = NLA_ALIGN(attr->nla_len);
	*at += step;
	*left -= step;
	return attr;
}

__u32 rdma_netlink_number(const struct nlattr *attr)
{
	const char *data = rdma_netlink_data(attr);
	__u32 number = 0;
	__u16 half = 0;

	switch (rdma_netlink_length(attr)) {
	case 1:
		return (__u8)*data;
	case 2:
		memcpy(&half, data, sizeof(half));
		return half;
	case 4:
		memcpy(&number, data, sizeof(number));
		return number;
	default:
		return 0;
	}
}

void rdma_netlink_string(const struct nlattr *attr, char *into, size_t size)
{
	size_t length = strnlen(rdma_netlink_data(attr), rdma_netlink_length(attr));

	length = length < size - 1 ? length : size - 1;
	memcpy(into, rdma_netlink_data(attr), length);
	into[length] = '\0';
}

/* reads one datagram of a dump; 1 at the end of the dump, 0 if more follows, or a negative errno */
static int parse_dump(const char *buffer, int len,
		      void (*each)(void *context, const char *attributes, int length),
		      void *context)
{
	const struct nlmsghdr *h = (const void *)buffer;

	for (; NLMSG_OK(h, (unsigned int)len); h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(h))->error ?: 1;
		each(context, NLMSG_DATA(h), NLMSG_PAYLOAD(h, 0));
	}
	return 0;
}

int rdma_netlink_dump(__u16 command, __u32 dev_index,
		      void (*each)(void *context, const char *attributes, int length),
		      void *context)
{
	struct {
		struct nlmsghdr head;
		struct nlattr attr;
		__u32 index;
	} request = {
		.head.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP | NLM_F_ACK,
		.attr.nla_len = NLA_HDRLEN + sizeof(__u32),
		.attr.nla_type = RDMA_NLDEV_ATTR_DEV_INDEX,
		.index = dev_index,
	};
	struct timeval patience = {.tv_sec = 5};
	char buffer[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	int fd, end = 0;

	request.head.nlmsg_len = dev_index == RDMA_NETLINK_ALL ? NLMSG_LENGTH(0) : sizeof(request);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(fd, &request, request.head.nlmsg_len, 0) < 0)
		end = -errno;
	while (!end) {
		ssize_t len = recv(fd, buffer, sizeof(buffer), 0);

		end = len < 0 ? -errno : parse_dump(buffer, len, each, context);
	}
	close(fd);
	return end < 0 ? end : 0;
}
