/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What rxetop's BPF programs and its reader agree on. */
#ifndef RXETOP_H
#define RXETOP_H

#include <linux/types.h>

#include "drop.h"
#include "loglin.h"

/* queue pairs at once; memory is only taken for those that are there */
#define MAX_QPS	    16384

#define TASKS	    8  /* enum rxe_task_kind has fewer */
#define DROP_PLACES 32 /* reasons; a newer driver may have more than we know */
#define ADDRESS_LEN 16 /* an IPv6 address, or an IPv4 one and zeros */

_Static_assert(DROP_COUNT <= DROP_PLACES, "more reasons than places");

struct qp_key {
	__u32 dev, qpn;
};

/* the counts are the buckets' */
struct latency {
	__u64 sum;
	__u32 bucket[LOGLIN_SLOTS];
};

enum { SENT, RECEIVED, WAYS };

/* everything counts up from the first event on */
struct qp_counts {
	__u64 packets[WAYS], bytes[WAYS]; /* bytes of messages */
	__u64 not_followed, with_error;	  /* work requests */
	__u64 task_ns;			  /* CPU time of its tasks */
	__u64 retransmits, timeouts;
	__u64 naks[WAYS], rnrs[WAYS];
	__u64 drops[DROP_PLACES];
	struct latency work; /* from posted to raised */
	struct latency stage;
};

struct qp_value {
	struct qp_counts counts;
	/* of a running task: the time that it began, less the time that it was switched out */
	__u64 task_begin[TASKS];
	__u32 task_cpu[TASKS];
	/* of the peer, from the first packet sent to it */
	__u32 peer_qpn;
	__u8 net; /* enum rxe_net; 0: not seen yet */
	__u8 peer[ADDRESS_LEN];
};

/* the stage whose times are counted: of rxe_tx_stamps, or of rxe_rx_stamps */
struct stage_choice {
	__u32 dir;    /* enum direction */
	__u32 number; /* as in lib/stage.h */
};

#endif /* RXETOP_H */
