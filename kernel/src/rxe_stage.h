/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The edges between the stages of a packet. While its event is disabled, each
 * function here is a patched-out branch.
 */
#ifndef RXE_STAGE_H
#define RXE_STAGE_H

#include <linux/jump_label.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#ifdef CONFIG_X86_TSC
#include <asm/tsc.h>
#endif

#include "rxe_trace.h"

/*
 * A BPF program is skipped if it is already running on that CPU. On some
 * kernels, tracepoints can be preempted: the packet of the next task would then
 * have no event.
 */
#define rxe_emit(event, ...)				\
	do {						\
		preempt_disable_notrace();		\
		trace_##event(__VA_ARGS__);		\
		preempt_enable_notrace();		\
	} while (0)

extern unsigned int rxe_stage_epoch;

void rxe_stage_init(struct rxe_qp *qp);
void rxe_tx_emit(struct rxe_pkt_info *pkt, struct sk_buff *skb);
void rxe_rx_emit(struct sk_buff *skb, u64 parsed);
void rxe_done_emit(struct rxe_done_stamps *s, struct sk_buff *skb);
void rxe_drop_emit(struct rxe_qp *qp, struct rxe_pkt_info *pkt,
		   struct sk_buff *skb, enum rxe_drop_reason reason);

DECLARE_STATIC_KEY_FALSE(rxe_stamp_is_tsc);

/*
 * The time at an edge, safe in every context: TSC cycles if the kernel trusts
 * the TSC, because reading the clock costs ten times as much; otherwise ns of
 * the clock that bpf_ktime_get_ns() reads. Records contain only ns.
 */
static __always_inline u64 rxe_stamp(void)
{
#ifdef CONFIG_X86_TSC
	if (static_branch_likely(&rxe_stamp_is_tsc))
		return rdtsc_ordered();
#endif
	return ktime_get_mono_fast_ns();
}

static __always_inline u64 rxe_switches(void)
{
	return current->nvcsw + current->nivcsw;
}

static inline u32 rxe_index(const struct rxe_qp *qp)
{
	return qp->ibqp.device->index;
}

static __always_inline enum rxe_role rxe_tx_role(const struct rxe_pkt_info *pkt)
{
	return pkt->mask & RXE_REQ_MASK ? RXE_ROLE_REQUESTER :
					  RXE_ROLE_RESPONDER;
}

/* requests go to the responder, answers to the requester */
static __always_inline enum rxe_role rxe_rx_role(const struct rxe_pkt_info *pkt)
{
	return pkt->mask & RXE_REQ_MASK ? RXE_ROLE_RESPONDER :
					  RXE_ROLE_REQUESTER;
}

/*
 * sent packets: rxe_tx_begin(), rxe_tx_end() for each stage, rxe_tx_packet()
 */

static __always_inline void __rxe_tx_begin(struct rxe_tx_stamps *s, u64 now)
{
	s->epoch = READ_ONCE(rxe_stage_epoch);
	s->ended = 0;
	s->switches = rxe_switches();
	s->begin = now;
}

static __always_inline void __rxe_tx_end(struct rxe_tx_stamps *s,
					 enum rxe_tx_stage stage, u64 now)
{
	s->end[stage] = now;
	s->ended |= BIT(stage);
}

static __always_inline void rxe_tx_begin(struct rxe_qp *qp)
{
	if (trace_rxe_tx_packet_enabled())
		__rxe_tx_begin(&qp->tx_stamps[RXE_ROLE_REQUESTER],
			       rxe_stamp());
}

/* an answer has no work request, so its first stage is empty */
static __always_inline void rxe_tx_begin_answer(struct rxe_qp *qp)
{
	if (trace_rxe_tx_packet_enabled()) {
		struct rxe_tx_stamps *s = &qp->tx_stamps[RXE_ROLE_RESPONDER];
		u64 now = rxe_stamp();

		__rxe_tx_begin(s, now);
		__rxe_tx_end(s, RXE_TX_WQE, now);
	}
}

static __always_inline void rxe_tx_end(struct rxe_qp *qp, enum rxe_role role,
				       enum rxe_tx_stage stage)
{
	if (trace_rxe_tx_packet_enabled())
		__rxe_tx_end(&qp->tx_stamps[role], stage, rxe_stamp());
}

static __always_inline void rxe_tx_pkt_end(const struct rxe_pkt_info *pkt,
					   enum rxe_tx_stage stage)
{
	if (trace_rxe_tx_packet_enabled())
		__rxe_tx_end(&pkt->qp->tx_stamps[rxe_tx_role(pkt)], stage,
			     rxe_stamp());
}

/* ends the last stage; the skb is still ours */
static __always_inline void rxe_tx_packet(struct rxe_pkt_info *pkt,
					  struct sk_buff *skb)
{
	if (trace_rxe_tx_packet_enabled())
		rxe_tx_emit(pkt, skb);
}

/*
 * arrival: rxe_rx_arrival() in the receive handler or on loopback, the rest in
 * rxe_rcv(). skb->tstamp is free from arrival to free: it carries the stamp.
 */

static __always_inline void __rxe_rx_arrival(struct sk_buff *skb, u64 now)
{
	struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);

	pkt->mask |= RXE_ARRIVED_MASK;
	pkt->switches = rxe_switches();
	skb->tstamp = now;
}

static __always_inline void rxe_rx_arrival(struct sk_buff *skb)
{
	if (trace_rxe_rx_packet_enabled())
		__rxe_rx_arrival(skb, rxe_stamp());
}

/* 0 while the event is off */
static __always_inline u64 rxe_rx_now(void)
{
	return trace_rxe_rx_packet_enabled() ? rxe_stamp() : 0;
}

/* for a handler that fills in the packet after its first stage has begun */
static __always_inline void rxe_rx_arrival_at(struct sk_buff *skb, u64 begun)
{
	if (trace_rxe_rx_packet_enabled() && begun)
		__rxe_rx_arrival(skb, begun);
}

static __always_inline u64 rxe_rx_parsed(void)
{
	return rxe_rx_now();
}

static __always_inline void rxe_rx_packet(struct sk_buff *skb, u64 parsed)
{
	if (trace_rxe_rx_packet_enabled())
		rxe_rx_emit(skb, parsed);
}

/*
 * from the queue of the QP to the end. One stage runs at a time: exec, and
 * the others in between.
 */

static __always_inline void __rxe_done_switch(struct rxe_done_stamps *s,
					      enum rxe_done_stage from)
{
	u64 now = rxe_stamp();

	s->stage[from] += now - s->last;
	s->last = now;
}

static __always_inline void rxe_done_queued(struct sk_buff *skb)
{
	if (trace_rxe_rx_done_enabled()) {
		SKB_TO_PKT(skb)->mask |= RXE_QUEUED_MASK;
		skb->tstamp = rxe_stamp();
	}
}

static __always_inline void __rxe_done_begin(struct rxe_done_stamps *s,
					     struct sk_buff *skb)
{
	s->open = !!(SKB_TO_PKT(skb)->mask & RXE_QUEUED_MASK);
	if (!s->open)
		return;
	s->epoch = READ_ONCE(rxe_stage_epoch);
	s->switched = false;
	s->begin = skb->tstamp;
	memset(s->stage, 0, sizeof(s->stage));
	s->switches = rxe_switches();
	s->last = rxe_stamp();
	s->stage[RXE_DONE_QUEUE] = s->last - s->begin;
}

static __always_inline void __rxe_done_resume(struct rxe_done_stamps *s)
{
	if (!s->open)
		return;
	s->switches = rxe_switches();
	s->last = rxe_stamp();
}

static __always_inline void rxe_done_begin(struct rxe_qp *qp,
					   enum rxe_role role,
					   struct sk_buff *skb)
{
	if (trace_rxe_rx_done_enabled())
		__rxe_done_begin(&qp->done_stamps[role], skb);
}

/*
 * The responder peeks: it sees a READ request once for every response packet.
 * The time between those runs belongs to nobody.
 */
static __always_inline void rxe_done_peek(struct rxe_qp *qp,
					  struct sk_buff *skb, bool again)
{
	if (trace_rxe_rx_done_enabled()) {
		struct rxe_done_stamps *s =
			&qp->done_stamps[RXE_ROLE_RESPONDER];

		if (again)
			__rxe_done_resume(s);
		else
			__rxe_done_begin(s, skb);
	}
}

static __always_inline void rxe_done_pause(struct rxe_qp *qp)
{
	if (trace_rxe_rx_done_enabled()) {
		struct rxe_done_stamps *s =
			&qp->done_stamps[RXE_ROLE_RESPONDER];

		if (!s->open)
			return;
		__rxe_done_switch(s, RXE_DONE_EXEC);
		s->switched |= s->switches != rxe_switches();
	}
}

static __always_inline void rxe_done_enter(struct rxe_qp *qp,
					   enum rxe_role role)
{
	if (trace_rxe_rx_done_enabled() && qp->done_stamps[role].open)
		__rxe_done_switch(&qp->done_stamps[role], RXE_DONE_EXEC);
}

static __always_inline void rxe_done_leave(struct rxe_qp *qp,
					   enum rxe_role role,
					   enum rxe_done_stage stage)
{
	if (trace_rxe_rx_done_enabled() && qp->done_stamps[role].open)
		__rxe_done_switch(&qp->done_stamps[role], stage);
}

/* the time since rxe_done_enter() was not work on the packet */
static __always_inline void rxe_done_skip(struct rxe_qp *qp, enum rxe_role role)
{
	if (trace_rxe_rx_done_enabled() && qp->done_stamps[role].open)
		qp->done_stamps[role].last = rxe_stamp();
}

/* the packet is about to be freed */
static __always_inline void rxe_rx_done(struct rxe_qp *qp, enum rxe_role role,
					struct sk_buff *skb)
{
	if (trace_rxe_rx_done_enabled())
		rxe_done_emit(&qp->done_stamps[role], skb);
}

/* a packet whose QP is known is dropped */
static __always_inline void rxe_drop(struct rxe_qp *qp,
				     struct rxe_pkt_info *pkt,
				     struct sk_buff *skb,
				     enum rxe_drop_reason reason)
{
	if (trace_rxe_drop_enabled())
		rxe_drop_emit(qp, pkt, skb, reason);
}

static __always_inline void rxe_drop_queued(struct rxe_qp *qp,
					    struct sk_buff *skb,
					    enum rxe_drop_reason reason)
{
	rxe_drop(qp, SKB_TO_PKT(skb), skb, reason);
}

#endif /* RXE_STAGE_H */
