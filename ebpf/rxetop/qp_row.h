/* SPDX-License-Identifier: GPL-2.0-only */
/* One queue pair in one interval, as it is shown. */
#ifndef QP_ROW_H
#define QP_ROW_H

#include <stdbool.h>

#include "hist.h"
#include "rdma_dev.h"
#include "rdma_qp.h"
#include "rxetop.h"

#define COMM_LEN  16
#define GROUP_LEN 256 /* longer paths of cgroups are cut */

struct quantiles {
	__u64 count;
	double mean; /* ns; NaN without values */
	__u64 p50, p99, p999;
};

struct qp_row {
	struct qp_key key;
	char dev[RDMA_DEV_NAME_LEN];
	struct rdma_qp info; /* as the kernel lists it; pid 0: the kernel's own */
	bool listed;	     /* false: it has gone */
	bool elsewhere;	     /* its process is not in the places that were chosen */
	bool counted;	     /* whether anything was counted in the interval */
	char comm[COMM_LEN]; /* as its process chose it: hostile */
	/* where its process is, if that was asked for; "": not known */
	char cgroup[GROUP_LEN], netns[32];
	/* of a row for several queue pairs: what they have in common, and how many */
	char group[GROUP_LEN];
	size_t qps;
	/* of the peer */
	__u32 peer_qpn;
	__u8 net;
	char peer[64]; /* address; "" until a packet was sent to it */
	/* in the interval, by second */
	double packets[WAYS], bytes[WAYS], requests;
	double cpu; /* share of one CPU */
	struct quantiles work, stage;
	/* since the start */
	__u64 total_packets[WAYS], total_bytes[WAYS], total_requests, total_task_ns;
	__u64 not_followed, with_error, retransmits, timeouts, naks[WAYS], rnrs[WAYS];
	__u64 drops[DROP_PLACES], dropped;
};

/* of one interval */
struct qp_interval {
	struct latency work, stage;
};

void latency_add(struct hist *into, const struct latency *from);
struct quantiles quantiles_of(const struct hist *h);
/* Add rates and numbers, but not quantiles. */
void row_add(struct qp_row *into, const struct qp_row *from);
/* Fill in what the counts tell; one_of: packets and requests that each seen one stands for. */
void row_count(struct qp_row *row, struct qp_interval *interval, const struct qp_value *now,
	       const struct qp_counts *before, double seconds, __u32 one_of);

#endif /* QP_ROW_H */
