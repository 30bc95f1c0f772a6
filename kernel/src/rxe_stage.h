/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The edges between the stages of a packet. While no event needs its time, each
 * function here is a patched-out branch.
 */
#ifndef RXE_STAGE_H
#define RXE_STAGE_H

#include <linux/hash.h>
#include <linux/jump_label.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#ifdef CONFIG_X86_TSC
#include <asm/tsc.h>
#endif

#include "rxe_event.h"
#include "rxe_trace_stages.h"

/*
 * What takes times: sending, arrival, and from the queue to the end. Each is on
 * while an event needs it. A packet that was in progress when it went on or off
 * has no record: epoch is odd while it is on, and changes each time.
 */
enum rxe_stamp_part { RXE_STAMP_TX, RXE_STAMP_RX, RXE_STAMP_DONE, RXE_STAMP_PARTS };

DECLARE_STATIC_KEY_FALSE(rxe_stamp_tx_on);
DECLARE_STATIC_KEY_FALSE(rxe_stamp_rx_on);
DECLARE_STATIC_KEY_FALSE(rxe_stamp_done_on);
extern unsigned int rxe_stamp_epoch[RXE_STAMP_PARTS];
/* when the epoch began */
extern u64 rxe_stamp_since[RXE_STAMP_PARTS];

#define rxe_stamp_tx_enabled()		static_branch_unlikely(&rxe_stamp_tx_on)
#define rxe_stamp_rx_enabled()		static_branch_unlikely(&rxe_stamp_rx_on)
#define rxe_stamp_done_enabled()	static_branch_unlikely(&rxe_stamp_done_on)

/* packets without times: 0 while an event wants all, else 1 less than a power of 2 */
extern unsigned int rxe_stamp_skip[RXE_STAMP_PARTS];

void rxe_stamp_init(struct rxe_qp *qp);
void __rxe_trace_tx(struct rxe_pkt_info *pkt, struct sk_buff *skb);
void __rxe_trace_rx(struct sk_buff *skb, u64 parsed);
void __rxe_trace_done(struct rxe_stamp_done *s, struct sk_buff *skb);
void __rxe_trace_unfinished(struct sk_buff *skb);

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

/* whether a packet is in a sample, the same at both ends; not every n-th of a message */
static __always_inline bool rxe_stamp_chosen(u32 psn, unsigned int skip)
{
	return !(hash_32(psn & BTH_PSN_MASK, 16) & skip);
}

/* how often the task slept and, in the lower half, was preempted */
static __always_inline u64 rxe_stamp_switches(void)
{
	return (u64)current->nvcsw << 32 | (u32)current->nivcsw;
}

/* flags of a packet, from the switches before it */
static __always_inline u8 rxe_stamp_switched(u64 before)
{
	u64 changed = before ^ rxe_stamp_switches();

	if (likely(!changed))
		return 0;
	return RXE_FLAG_SWITCHED |
	       (upper_32_bits(changed) ? RXE_FLAG_SLEPT : 0);
}

/*
 * Whether a packet got the stamp before this epoch, perhaps by another clock.
 * The clock may step back a little across CPUs.
 */
#define RXE_STAMP_STEP		BIT(16)

static __always_inline bool rxe_stamp_is_stale(enum rxe_stamp_part part,
					       u64 stamp, u64 now)
{
	u64 age = now - READ_ONCE(rxe_stamp_since[part]);

	return now - stamp + RXE_STAMP_STEP > age + RXE_STAMP_STEP;
}

static __always_inline enum rxe_role rxe_stamp_tx_role(const struct rxe_pkt_info *pkt)
{
	return pkt->mask & RXE_REQ_MASK ? RXE_ROLE_REQUESTER :
					  RXE_ROLE_RESPONDER;
}

/* requests go to the responder, answers to the requester */
static __always_inline enum rxe_role rxe_stamp_rx_role(const struct rxe_pkt_info *pkt)
{
	return pkt->mask & RXE_REQ_MASK ? RXE_ROLE_RESPONDER :
					  RXE_ROLE_REQUESTER;
}

/*
 * sent packets: rxe_stamp_tx_begin(), rxe_stamp_tx_end() for each stage, rxe_trace_tx()
 */

static __always_inline bool __rxe_stamp_tx_begin(struct rxe_stamp_tx *s, u32 psn)
{
	s->epoch = READ_ONCE(rxe_stamp_epoch[RXE_STAMP_TX]);
	s->open = (s->epoch & 1) &&
		  rxe_stamp_chosen(psn, READ_ONCE(rxe_stamp_skip[RXE_STAMP_TX]));
	if (s->open) {
		s->switches = rxe_stamp_switches();
		s->raw.id.begin = rxe_stamp();
	}
	return s->open;
}

static __always_inline void __rxe_stamp_tx_end(struct rxe_stamp_tx *s,
					       enum rxe_tx_stage stage)
{
	if (s->open)
		s->raw.end[stage] = rxe_stamp();
}

static __always_inline void rxe_stamp_tx_begin(struct rxe_qp *qp)
{
	if (rxe_stamp_tx_enabled())
		__rxe_stamp_tx_begin(&qp->tx_stamps[RXE_ROLE_REQUESTER],
				     qp->req.psn);
}

/* an answer has no work request, so its first stage is empty */
static __always_inline void rxe_stamp_tx_begin_answer(struct rxe_qp *qp, u32 psn)
{
	if (rxe_stamp_tx_enabled()) {
		struct rxe_stamp_tx *s = &qp->tx_stamps[RXE_ROLE_RESPONDER];

		if (__rxe_stamp_tx_begin(s, psn))
			s->raw.end[RXE_TX_WQE] = s->raw.id.begin;
	}
}

static __always_inline void rxe_stamp_tx_end(struct rxe_qp *qp, enum rxe_role role,
					     enum rxe_tx_stage stage)
{
	if (rxe_stamp_tx_enabled())
		__rxe_stamp_tx_end(&qp->tx_stamps[role], stage);
}

static __always_inline void rxe_stamp_tx_pkt_end(const struct rxe_pkt_info *pkt,
						 enum rxe_tx_stage stage)
{
	if (rxe_stamp_tx_enabled())
		__rxe_stamp_tx_end(&pkt->qp->tx_stamps[rxe_stamp_tx_role(pkt)], stage);
}

/* ends the last stage; the skb is still ours */
static __always_inline void rxe_trace_tx(struct rxe_pkt_info *pkt,
					 struct sk_buff *skb)
{
	if (rxe_stamp_tx_enabled())
		__rxe_trace_tx(pkt, skb);
}

/*
 * arrival: rxe_stamp_rx_arrival() in the receive handler or on loopback, the rest in
 * rxe_rcv(). skb->tstamp is free from arrival to free: it carries the stamp. When
 * the stages have ended, they take the place of epoch and count of switches. The
 * top bit of either half tells the two apart.
 */

static __always_inline u64 rxe_stamp_rx_mark(void)
{
	u64 epoch = READ_ONCE(rxe_stamp_epoch[RXE_STAMP_RX]) & S32_MAX;

	return epoch << 32 | ((current->nvcsw + current->nivcsw) & S32_MAX);
}

static __always_inline void __rxe_stamp_rx_arrival(struct sk_buff *skb, u64 now)
{
	struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);

	pkt->mask |= RXE_ARRIVED_MASK;
	pkt->switches = rxe_stamp_rx_mark();
	skb->tstamp = now;
}

static __always_inline void rxe_stamp_rx_arrival(struct sk_buff *skb)
{
	if (rxe_stamp_rx_enabled())
		__rxe_stamp_rx_arrival(skb, rxe_stamp());
}

/* 0 while nobody takes times */
static __always_inline u64 rxe_stamp_rx_now(void)
{
	return rxe_stamp_rx_enabled() ? rxe_stamp() : 0;
}

/* for a handler that fills in the packet after its first stage has begun */
static __always_inline void rxe_stamp_rx_arrival_at(struct sk_buff *skb, u64 begun)
{
	if (rxe_stamp_rx_enabled() && begun)
		__rxe_stamp_rx_arrival(skb, begun);
}

/* 0 for a packet outside the sample */
static __always_inline u64 rxe_stamp_rx_parsed(const struct rxe_pkt_info *pkt)
{
	if (rxe_stamp_rx_enabled() &&
	    rxe_stamp_chosen(pkt->psn, READ_ONCE(rxe_stamp_skip[RXE_STAMP_RX])))
		return rxe_stamp();
	return 0;
}

static __always_inline void rxe_trace_rx(struct sk_buff *skb, u64 parsed)
{
	if (rxe_stamp_rx_enabled())
		__rxe_trace_rx(skb, parsed);
}

/* one of several copies: the arrival is that of the original */
static __always_inline void rxe_stamp_rx_copied(struct rxe_pkt_info *copy)
{
	copy->mask &= ~RXE_ARRIVED_MASK;
}

/* a packet that has arrived is dropped before its end */
static __always_inline void rxe_trace_unfinished(struct sk_buff *skb)
{
	if (trace_rxe_rx_stamps_enabled())
		__rxe_trace_unfinished(skb);
}

/*
 * from the queue of the QP to the end. One stage runs at a time: exec, and
 * the others in between.
 */

static __always_inline void __rxe_stamp_done_switch(struct rxe_stamp_done *s,
						    enum rxe_done_stage from)
{
	u64 now = rxe_stamp();

	s->raw.stage[from] += now - s->last;
	s->last = now;
}

static __always_inline void rxe_stamp_done_queued(struct sk_buff *skb)
{
	if (rxe_stamp_done_enabled()) {
		struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);

		if (!rxe_stamp_chosen(pkt->psn,
				      READ_ONCE(rxe_stamp_skip[RXE_STAMP_DONE])))
			return;
		pkt->mask |= RXE_QUEUED_MASK;
		skb->tstamp = rxe_stamp();
	}
}

static __always_inline void __rxe_stamp_done_begin(struct rxe_stamp_done *s,
						   struct sk_buff *skb)
{
	s->epoch = READ_ONCE(rxe_stamp_epoch[RXE_STAMP_DONE]);
	s->open = (SKB_TO_PKT(skb)->mask & RXE_QUEUED_MASK) && (s->epoch & 1);
	if (!s->open)
		return;
	s->switched = 0;
	s->raw.id.begin = skb->tstamp;
	memset(s->raw.stage, 0, sizeof(s->raw.stage));
	s->switches = rxe_stamp_switches();
	s->last = rxe_stamp();
	if (unlikely(rxe_stamp_is_stale(RXE_STAMP_DONE, s->raw.id.begin, s->last))) {
		s->open = false;
		return;
	}
	s->raw.stage[RXE_DONE_QUEUE] = s->last - s->raw.id.begin;
}

static __always_inline void __rxe_stamp_done_resume(struct rxe_stamp_done *s)
{
	if (!s->open)
		return;
	s->switches = rxe_stamp_switches();
	s->last = rxe_stamp();
}

static __always_inline void rxe_stamp_done_begin(struct rxe_qp *qp,
						 enum rxe_role role,
						 struct sk_buff *skb)
{
	if (rxe_stamp_done_enabled())
		__rxe_stamp_done_begin(&qp->done_stamps[role], skb);
}

/*
 * The responder peeks: it sees a READ request once for every response packet.
 * The time between those runs belongs to nobody.
 */
static __always_inline void rxe_stamp_done_peek(struct rxe_qp *qp,
						struct sk_buff *skb, bool again)
{
	if (rxe_stamp_done_enabled()) {
		struct rxe_stamp_done *s =
			&qp->done_stamps[RXE_ROLE_RESPONDER];

		if (again)
			__rxe_stamp_done_resume(s);
		else
			__rxe_stamp_done_begin(s, skb);
	}
}

static __always_inline void rxe_stamp_done_pause(struct rxe_qp *qp)
{
	if (rxe_stamp_done_enabled()) {
		struct rxe_stamp_done *s =
			&qp->done_stamps[RXE_ROLE_RESPONDER];

		if (!s->open)
			return;
		__rxe_stamp_done_switch(s, RXE_DONE_EXEC);
		s->switched |= rxe_stamp_switched(s->switches);
	}
}

static __always_inline void rxe_stamp_done_enter(struct rxe_qp *qp,
						 enum rxe_role role)
{
	if (rxe_stamp_done_enabled() && qp->done_stamps[role].open)
		__rxe_stamp_done_switch(&qp->done_stamps[role], RXE_DONE_EXEC);
}

static __always_inline void rxe_stamp_done_leave(struct rxe_qp *qp,
						 enum rxe_role role,
						 enum rxe_done_stage stage)
{
	if (rxe_stamp_done_enabled() && qp->done_stamps[role].open)
		__rxe_stamp_done_switch(&qp->done_stamps[role], stage);
}

/* the time since rxe_stamp_done_enter() was not work on the packet */
static __always_inline void rxe_stamp_done_skip(struct rxe_qp *qp, enum rxe_role role)
{
	if (rxe_stamp_done_enabled() && qp->done_stamps[role].open)
		qp->done_stamps[role].last = rxe_stamp();
}

/* the packet is about to be freed */
static __always_inline void rxe_trace_done(struct rxe_qp *qp, enum rxe_role role,
					   struct sk_buff *skb)
{
	if (rxe_stamp_done_enabled())
		__rxe_trace_done(&qp->done_stamps[role], skb);
}

#endif /* RXE_STAGE_H */
