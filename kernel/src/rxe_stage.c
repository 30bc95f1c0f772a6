// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Converts the stamps of a packet to the record of its event.
 */
#include <linux/clocksource.h>
#include <linux/math64.h>

#include "rxe.h"
#include "rxe_stage.h"

/*
 * Counts how often a stage event was enabled. A packet that was in progress
 * when the event was enabled, or whose stamps span two epochs, has no record.
 */
unsigned int rxe_stage_epoch;

/* ns = stamp * rxe_stamp_mult >> rxe_stamp_shift */
DEFINE_STATIC_KEY_FALSE(rxe_stamp_is_tsc);
static u32 rxe_stamp_mult = 1;
static u32 rxe_stamp_shift;

/* stage events that are enabled; the tracepoint code serialises changes */
static unsigned int rxe_stage_events;

static void rxe_stamp_choose(void)
{
#ifdef CONFIG_X86_TSC
	if (!check_tsc_unstable() && tsc_khz) {
		clocks_calc_mult_shift(&rxe_stamp_mult, &rxe_stamp_shift,
				       tsc_khz, NSEC_PER_MSEC, 0);
		static_branch_enable(&rxe_stamp_is_tsc);
		return;
	}
	static_branch_disable(&rxe_stamp_is_tsc);
#endif
	rxe_stamp_mult = 1;
	rxe_stamp_shift = 0;
}

int rxe_stage_register(void)
{
	if (!rxe_stage_events++)
		rxe_stamp_choose();
	WRITE_ONCE(rxe_stage_epoch, rxe_stage_epoch + 1);
	return 0;
}

void rxe_stage_unregister(void)
{
	rxe_stage_events--;
}

static __always_inline u64 rxe_stamp_ns(u64 stamps)
{
	return mul_u64_u32_shr(stamps, rxe_stamp_mult, rxe_stamp_shift);
}

/* the time of a stamp, by the clock that bpf_ktime_get_ns() reads */
static __always_inline u64 rxe_stamp_time(u64 stamp, u64 now)
{
	return ktime_get_mono_fast_ns() - rxe_stamp_ns(now - stamp);
}

/* 32 bits hold 4.29 s; the clock may step back a little across CPUs */
static noinline void rxe_clamp_stages(u32 *stage, const u64 *stamps, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		u64 ns = (s64)stamps[i] < 0 ? 0 : rxe_stamp_ns(stamps[i]);

		stage[i] = min_t(u64, ns, U32_MAX);
	}
}

static __always_inline void rxe_fill_stages(u32 *stage, const u64 *stamps,
					    int n)
{
	u64 mult = rxe_stamp_mult;
	u32 shift = rxe_stamp_shift;
	u64 all = 0;
	int i;

	for (i = 0; i < n; i++) {
		u64 ns = stamps[i] * mult >> shift;

		all |= stamps[i] | ns;
		stage[i] = ns;
	}
	if (unlikely(upper_32_bits(all)))
		rxe_clamp_stages(stage, stamps, n);
}

/* fields that are the same for all packets of a QP */
void rxe_stage_init(struct rxe_qp *qp)
{
	enum rxe_role role;

	for (role = RXE_ROLE_REQUESTER; role <= RXE_ROLE_RESPONDER; role++) {
		struct rxe_packet_id *tx = &qp->tx_stamps[role].rec.id;
		struct rxe_packet_id *done = &qp->done_stamps[role].rec.id;

		tx->dev = rxe_index(qp);
		tx->qpn = qp_num(qp);
		tx->role = role;
		done->dev = rxe_index(qp);
		done->qpn = qp_num(qp);
		done->role = role;
	}
}

static __always_inline void rxe_fill_id(struct rxe_packet_id *id,
					struct rxe_pkt_info *pkt,
					const struct sk_buff *skb,
					bool switched)
{
	int overhead = header_size(pkt) + bth_pad(pkt) + RXE_ICRC_SIZE;

	id->dqpn = bth_qpn(pkt);
	id->psn = pkt->psn;
	id->paylen = pkt->paylen;
	id->payload = pkt->paylen - overhead;
	id->opcode = pkt->opcode;
	id->net = skb->protocol == htons(ETH_P_IP)   ? RXE_NET_V2_IPV4 :
		  skb->protocol == htons(ETH_P_IPV6) ? RXE_NET_V2_IPV6 :
						       RXE_NET_V1;
	id->flags = (switched ? RXE_FLAG_SWITCHED : 0) |
		    (pkt->mask & RXE_LOOPBACK_MASK ? RXE_FLAG_LOOPBACK : 0);
}

void rxe_tx_emit(struct rxe_pkt_info *pkt, struct sk_buff *skb)
{
	struct rxe_tx_stamps *s = &pkt->qp->tx_stamps[rxe_tx_role(pkt)];
	u64 stamps[RXE_TX_STAGES];
	u64 now = rxe_stamp();
	int i;

	__rxe_tx_end(s, RXE_TX_ICRC, now);

	/* the event came on, or off and on again, in mid-packet */
	if (s->epoch != READ_ONCE(rxe_stage_epoch) ||
	    s->ended != BIT(RXE_TX_STAGES) - 1)
		return;
	s->ended = 0;

	rxe_fill_id(&s->rec.id, pkt, skb, s->switches != rxe_switches());
	s->rec.id.begin = rxe_stamp_time(s->begin, now);
	stamps[0] = s->end[0] - s->begin;
	for (i = 1; i < RXE_TX_STAGES; i++)
		stamps[i] = s->end[i] - s->end[i - 1];
	rxe_fill_stages(s->rec.stage, stamps, RXE_TX_STAGES);
	rxe_emit(rxe_tx_packet, &s->rec, skb);
}

/* several CPUs may receive for one QP: no place in the QP would do */
void rxe_rx_emit(struct sk_buff *skb, u64 parsed)
{
	u64 now = rxe_stamp();
	struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);
	u64 stamps[RXE_RX_STAGES] = { parsed - skb->tstamp, now - parsed };
	struct rxe_rx_record rec;

	/* the event came on in mid-packet */
	if (!(pkt->mask & RXE_ARRIVED_MASK) || !parsed)
		return;

	rec.id.begin = rxe_stamp_time(skb->tstamp, now);
	rec.id.dev = pkt->rxe->ib_dev.index;
	/* a multicast packet has not met its QPs yet */
	rec.id.qpn = pkt->qp ? qp_num(pkt->qp) : IB_MULTICAST_QPN;
	rec.id.role = rxe_rx_role(pkt);
	rxe_fill_id(&rec.id, pkt, skb, pkt->switches != rxe_switches());
	rxe_fill_stages(rec.stage, stamps, RXE_RX_STAGES);
	rxe_emit(rxe_rx_packet, &rec, skb);
}

void rxe_done_emit(struct rxe_done_stamps *s, struct sk_buff *skb)
{
	if (!s->open)
		return;
	__rxe_done_switch(s, RXE_DONE_EXEC);
	s->open = false;
	if (s->epoch != READ_ONCE(rxe_stage_epoch))
		return;

	s->rec.id.begin = rxe_stamp_time(s->begin, s->last);
	rxe_fill_id(&s->rec.id, SKB_TO_PKT(skb), skb,
		    s->switched || s->switches != rxe_switches());
	rxe_fill_stages(s->rec.stage, s->stage, RXE_DONE_STAGES);
	rxe_emit(rxe_rx_done, &s->rec, skb);
}

void rxe_drop_emit(struct rxe_qp *qp, struct rxe_pkt_info *pkt,
		   struct sk_buff *skb, enum rxe_drop_reason reason)
{
	rxe_emit(rxe_drop, skb, rxe_index(qp), qp_num(qp), pkt->psn,
		 pkt->opcode, reason);
}
