/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Follows a work request from its doorbell to its completion: what an application feels.
 *
 * Posted is when the driver is called to look at the send queue, rxe_post_send(): user space has
 * written the request into shared memory by then. Raised is when its completion is put into the
 * completion queue, rxe_cq_post(). Both functions are in every driver. What comes before and after
 * (the system call; the poll) is in user space and not seen.
 *
 * Both tables are direct-mapped, and so bounded. An entry that another has replaced is noticed: its
 * request is counted as not followed, and in no histogram.
 */
#ifndef ROCELAB_WORK_REQUEST_BPF_H
#define ROCELAB_WORK_REQUEST_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bounded.bpf.h"
#include "rxe_types.bpf.h"
#include "work_request.h"

/* follow one of so many work requests, a power of 2, less 1 */
const volatile __u32 work_sample_mask = 0;

/* set when posts are seen: attaching takes long enough for completions of others */
bool work_ready = false;

struct work_posted work_posted[WORK_ENTRIES] = {};
struct work_queue work_queues[WORK_QUEUES] = {};

struct work_completion {
	__u32 dev, qpn;
	__u8 opcode;
	__u32 ns; /* from its post; clamped at 32 bits */
};

/* defined by the probe: a send completion is raised; one that was not followed; an error's */
static __always_inline void work_completed(const struct work_completion *completion);
static __always_inline void work_unseen(__u32 dev, __u32 qpn);
static __always_inline void work_failed(__u32 dev, __u32 qpn);

/* neighbours in number are far from each other, the requests of one are side by side */
static __always_inline struct work_posted *work_entry(__u32 qp, __u32 index)
{
	return &work_posted[bounded((qp * 2654435761u >> 16) + index, WORK_ENTRIES - 1)];
}

static __always_inline struct work_queue *work_queue_of(__u32 qp)
{
	return &work_queues[bounded(qp + (qp >> 24) * 509, WORK_QUEUES - 1)];
}

static __always_inline void work_note(__u32 qp, __u32 first, __u32 end, __u32 mask, __u64 now)
{
	for (int i = 0; i < WORK_BATCH; i++) {
		struct work_posted *p;

		if (first == end)
			break;
		p = work_entry(qp, first);
		p->time = work_sample_mask && bpf_get_prandom_u32() & work_sample_mask ? 0 : now;
		p->qp = qp;
		p->index = first;
		first = (first + 1) & mask;
	}
}

/* the kernel's own requests are not in the queue yet */
static __always_inline __u32 work_list_length(const struct ib_send_wr *wr)
{
	__u32 length = 0;

	for (int i = 0; i < WORK_BATCH && wr; i++) {
		length++;
		wr = BPF_CORE_READ(wr, next);
	}
	return length;
}

SEC("fentry/rxe_post_send")
int BPF_PROG(work_post, struct ib_qp *ibqp, const struct ib_send_wr *wr)
{
	__u64 now = bpf_ktime_get_ns();
	const struct rxe_qp *qp = (const void *)ibqp;
	__u32 id = WORK_QP(ibqp->device->index, ibqp->qp_num);
	struct rxe_queue *queue = BPF_CORE_READ(qp, sq.queue);
	__u32 mask = BPF_CORE_READ(queue, index_mask);
	__u32 producer = BPF_CORE_READ(queue, buf, producer_index) & mask;
	struct work_queue *w = work_queue_of(id);
	__u32 first = producer;

	if (BPF_CORE_READ(qp, is_user)) {
		/* a queue pair's first doorbell since we look: when others rang is not known */
		first = w->qp == id ? w->producer : (producer - 1) & mask;
	} else {
		producer = (producer + work_list_length(wr)) & mask;
	}
	work_note(id, first, producer, mask, now);
	w->queue = (__u64)queue;
	w->producer = producer;
	w->qp = id;
	return 0;
}

/* when the request that now completes was posted; 0: not known */
static __always_inline __u64 work_posted_at(__u32 id)
{
	const struct work_queue *w = work_queue_of(id);
	const struct rxe_queue *queue = (const void *)w->queue;
	__u32 mask, index, rung, written;
	struct work_posted *p;
	__u64 time;

	if (w->qp != id)
		return 0;
	mask = BPF_CORE_READ(queue, index_mask);
	/* the driver has just gone one further */
	index = (BPF_CORE_READ(queue, index) - 1) & mask;
	p = work_entry(id, index);
	if (!p->time || p->qp != id || p->index != index)
		return 0;
	/* from the last round, if the driver found the request before its doorbell rang */
	rung = (w->producer - index) & mask;
	written = (BPF_CORE_READ(queue, buf, producer_index) - index) & mask;
	if (!rung || rung > written)
		return 0;
	time = p->time;
	p->time = 0;
	return time;
}

#define WORK_WC_RECV 0x80 /* IB_WC_RECV: in the opcode of each receive completion */

SEC("fentry/rxe_cq_post")
int BPF_PROG(work_raise, struct rxe_cq *cq, struct rxe_cqe *cqe)
{
	struct work_completion c = {};
	__u64 now, posted, ns;
	__u32 opcode = cqe->uibwc.opcode;

	if (opcode & WORK_WC_RECV || !work_ready)
		return 0;
	now = bpf_ktime_get_ns();
	c.dev = cq->ibcq.device->index;
	/* by probe_read: the verifier knows the kernel's half of the union only */
	if (cq->is_user)
		c.qpn = BPF_CORE_READ(cqe, uibwc.qp_num);
	else
		c.qpn = BPF_CORE_READ(cqe, ibwc.qp, qp_num);
	c.opcode = opcode;
	if (cqe->uibwc.status) { /* its opcode is not set, and it may be a receive's */
		work_failed(c.dev, c.qpn);
		return 0;
	}
	posted = work_posted_at(WORK_QP(c.dev, c.qpn));
	if (!posted) {
		if (!work_sample_mask)
			work_unseen(c.dev, c.qpn);
		return 0;
	}
	ns = now - posted;
	c.ns = ns >> 32 ? ~0u : ns;
	work_completed(&c);
	return 0;
}

#endif /* ROCELAB_WORK_REQUEST_BPF_H */
