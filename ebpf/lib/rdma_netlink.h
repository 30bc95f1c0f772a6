/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Dumps of the kernel's RDMA netlink (nldev). */
#ifndef ROCELAB_RDMA_NETLINK_H
#define ROCELAB_RDMA_NETLINK_H

#include <linux/netlink.h>
#include <linux/types.h>
#include <string.h>

/* the attribute at *at, within a message or a nested attribute; NULL at the end */
const struct nlattr *rdma_netlink_next(const char **at, int *left);

static inline int rdma_netlink_type(const struct nlattr *attr)
{
	return attr->nla_type & NLA_TYPE_MASK;
}

static inline int rdma_netlink_length(const struct nlattr *attr)
{
	return attr->nla_len - (int)NLA_HDRLEN;
}

static inline const char *rdma_netlink_data(const struct nlattr *attr)
{
	return (const char *)attr + NLA_HDRLEN;
}

/* a number of 1, 2 or 4 bytes; 0 if it is of another size */
__u32 rdma_netlink_number(const struct nlattr *attr);
/* at most size - 1 bytes */
void rdma_netlink_string(const struct nlattr *attr, char *into, size_t size);

/* of all devices: no index */
#define RDMA_NETLINK_ALL (~0u)

/*
 * Dump by a command of nldev, of one device or all; each message's attributes are passed on.
 * Returns 0 or a negative errno.
 */
int rdma_netlink_dump(__u16 command, __u32 dev_index,
		      void (*each)(void *context, const char *attributes, int length),
		      void *context);

#endif /* ROCELAB_RDMA_NETLINK_H */
