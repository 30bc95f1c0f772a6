// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rdma_qp.h"

#include <rdma/rdma_netlink.h>

#include "rdma_netlink.h"

struct listing {
	void (*each)(void *context, const struct rdma_qp *qp);
	void *context;
};

static void parse_entry(const struct listing *listing, const char *at, int left)
{
	const struct nlattr *attr;
	struct rdma_qp qp = {};

	while ((attr = rdma_netlink_next(&at, &left))) {
		__u32 number = rdma_netlink_number(attr);

		switch (rdma_netlink_type(attr)) {
		case RDMA_NLDEV_ATTR_RES_LQPN:
			qp.qpn = number;
			break;
		case RDMA_NLDEV_ATTR_RES_RQPN:
			qp.remote_qpn = number;
			break;
		case RDMA_NLDEV_ATTR_RES_TYPE:
			qp.type = number;
			break;
		case RDMA_NLDEV_ATTR_RES_STATE:
			qp.state = number;
			break;
		case RDMA_NLDEV_ATTR_RES_PID:
			qp.pid = number;
			break;
		}
	}
	listing->each(listing->context, &qp);
}

static void parse_table(const struct listing *listing, const char *at, int left)
{
	const struct nlattr *attr;

	while ((attr = rdma_netlink_next(&at, &left))) {
		if (rdma_netlink_type(attr) == RDMA_NLDEV_ATTR_RES_QP_ENTRY)
			parse_entry(listing, rdma_netlink_data(attr), rdma_netlink_length(attr));
	}
}

static void parse_message(void *context, const char *at, int left)
{
	const struct nlattr *attr;

	while ((attr = rdma_netlink_next(&at, &left))) {
		if (rdma_netlink_type(attr) == RDMA_NLDEV_ATTR_RES_QP)
			parse_table(context, rdma_netlink_data(attr), rdma_netlink_length(attr));
	}
}

int rdma_qp_list(__u32 dev_index, void (*each)(void *context, const struct rdma_qp *qp),
		 void *context)
{
	struct listing listing = {.each = each, .context = context};

	return rdma_netlink_dump(RDMA_NLDEV_CMD_RES_QP_GET, dev_index, parse_message, &listing);
}

const char *rdma_qp_type_name(__u32 type)
{
	/* enum ib_qp_type */
	static const char *const names[] = {
		[0] = "SMI", [1] = "GSI",	 [2] = "RC",	  [3] = "UC",
		[4] = "UD",  [8] = "RAW_PACKET", [9] = "XRC_INI", [10] = "XRC_TGT",
	};

	return type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type] : "unknown";
}

const char *rdma_qp_state_name(__u32 state)
{
	/* enum ib_qp_state */
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}
