// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Converts the stamps of a packet to the record of its event.
 */
#include <linux/clocksource.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/suspend.h>
#include <linux/sysfs.h>
#include <linux/workqueue.h>

#include "rxe.h"
#include "rxe_stage.h"
#define CREATE_TRACE_POINTS
#include "rxe_trace_stages.h"

DEFINE_STATIC_KEY_FALSE(rxe_stamp_tx_on);
DEFINE_STATIC_KEY_FALSE(rxe_stamp_rx_on);
DEFINE_STATIC_KEY_FALSE(rxe_stamp_done_on);
unsigned int rxe_stamp_epoch[RXE_STAMP_PARTS];
u64 rxe_stamp_since[RXE_STAMP_PARTS];
unsigned int rxe_stamp_skip[RXE_STAMP_PARTS];

/* events that need a part, and those of them that need all packets */
static unsigned int rxe_stamp_users[RXE_STAMP_PARTS];
static unsigned int rxe_stamp_all[RXE_STAMP_PARTS];
/* of rxe_tx_stamps and rxe_rx_stamps: 1 less than the parameter stamp_one_of */
static unsigned int rxe_stamp_sample;
static DEFINE_MUTEX(rxe_stamp_lock);

/* ns = stamp * rxe_stamp_mult >> rxe_stamp_shift */
DEFINE_STATIC_KEY_FALSE(rxe_stamp_is_tsc);
static u32 rxe_stamp_mult = 1;
static u32 rxe_stamp_shift;

static __always_inline u64 rxe_stamp_ns(u64 stamps)
{
	return mul_u64_u32_shr(stamps, rxe_stamp_mult, rxe_stamp_shift);
}

static bool rxe_stamp_used(void)
{
	return rxe_stamp_users[RXE_STAMP_TX] || rxe_stamp_users[RXE_STAMP_RX] ||
	       rxe_stamp_users[RXE_STAMP_DONE];
}

static void rxe_stamp_set_skip(enum rxe_stamp_part part)
{
	WRITE_ONCE(rxe_stamp_skip[part],
		   rxe_stamp_all[part] ? 0 : rxe_stamp_sample);
}

static struct static_key *rxe_stamp_key(enum rxe_stamp_part part)
{
	return part == RXE_STAMP_TX ? &rxe_stamp_tx_on.key :
	       part == RXE_STAMP_RX ? &rxe_stamp_rx_on.key :
				      &rxe_stamp_done_on.key;
}

static void rxe_stamp_next_epoch(enum rxe_stamp_part part)
{
	WRITE_ONCE(rxe_stamp_since[part], rxe_stamp());
	/* who sees the epoch sees when it began */
	smp_store_release(&rxe_stamp_epoch[part], rxe_stamp_epoch[part] + 1);
}

/* while the system is suspended, there is no epoch: that time is no wait */
static bool rxe_stamp_asleep;

/* stop, or go on, where times are taken */
static void rxe_stamp_next_epochs(void)
{
	enum rxe_stamp_part part;

	for (part = 0; part < RXE_STAMP_PARTS; part++)
		if (rxe_stamp_users[part])
			rxe_stamp_next_epoch(part);
}

/* the TSC was seen to run at another rate, as after a migration to another host */
static bool rxe_stamp_tsc_is_wrong;
/* a moment by either clock; 0: none yet */
static u64 rxe_stamp_checked, rxe_stamp_checked_ns;

static void rxe_stamp_choose(void)
{
	u32 mult = 1, shift = 0;
	bool is_tsc = false;

#ifdef CONFIG_X86_TSC
	if (tsc_khz && !check_tsc_unstable() && !rxe_stamp_tsc_is_wrong) {
		clocks_calc_mult_shift(&mult, &shift, tsc_khz, NSEC_PER_MSEC, 0);
		is_tsc = true;
	}
#endif
	if (mult == rxe_stamp_mult && shift == rxe_stamp_shift)
		return;
	if (!rxe_stamp_asleep)
		rxe_stamp_next_epochs();
	rxe_stamp_checked_ns = 0;
	rxe_stamp_mult = mult;
	rxe_stamp_shift = shift;
	if (is_tsc)
		static_branch_enable(&rxe_stamp_is_tsc);
	else
		static_branch_disable(&rxe_stamp_is_tsc);
	if (!rxe_stamp_asleep)
		rxe_stamp_next_epochs();
}

static void rxe_stamp_check_rate(void)
{
	u64 before = ktime_get_mono_fast_ns();
	u64 stamp = rxe_stamp();
	u64 after = ktime_get_mono_fast_ns();
	u64 ns = after - rxe_stamp_checked_ns;
	s64 ahead = rxe_stamp_ns(stamp - rxe_stamp_checked) - ns;

	/* the CPU was taken away meanwhile */
	if (after - before > NSEC_PER_MSEC)
		return;
	if (rxe_stamp_checked_ns && abs(ahead) > ns >> 8)
		rxe_stamp_tsc_is_wrong = true;
	rxe_stamp_checked = stamp;
	rxe_stamp_checked_ns = after;
}

static void rxe_stamp_check(struct work_struct *work);
static DECLARE_DEFERRABLE_WORK(rxe_stamp_checker, rxe_stamp_check);

static void rxe_stamp_check(struct work_struct *work)
{
	mutex_lock(&rxe_stamp_lock);
	if (!rxe_stamp_asleep) {
		rxe_stamp_check_rate();
		rxe_stamp_choose();
	}
	mutex_unlock(&rxe_stamp_lock);
	schedule_delayed_work(&rxe_stamp_checker, HZ);
}

static int rxe_stamp_suspend(struct notifier_block *nb, unsigned long event,
			     void *unused)
{
	bool asleep = event == PM_SUSPEND_PREPARE || event == PM_HIBERNATION_PREPARE ||
		      event == PM_RESTORE_PREPARE;

	mutex_lock(&rxe_stamp_lock);
	if (asleep != rxe_stamp_asleep) {
		rxe_stamp_asleep = asleep;
		rxe_stamp_checked_ns = 0;
		rxe_stamp_next_epochs();
	}
	mutex_unlock(&rxe_stamp_lock);
	return NOTIFY_DONE;
}

static struct notifier_block rxe_stamp_pm = { .notifier_call = rxe_stamp_suspend };

/* What goes with taking times at all. The caller holds the mutex of the tracepoints. */
static unsigned int rxe_stamp_events;

static void rxe_stamp_begin_use(void)
{
	if (rxe_stamp_events++)
		return;
	rxe_stamp_asleep = false;
	rxe_stamp_tsc_is_wrong = false;
	rxe_stamp_checked_ns = 0;
	register_pm_notifier(&rxe_stamp_pm);
	schedule_delayed_work(&rxe_stamp_checker, 0);
}

static void rxe_stamp_end_use(void)
{
	if (--rxe_stamp_events)
		return;
	cancel_delayed_work_sync(&rxe_stamp_checker);
	unregister_pm_notifier(&rxe_stamp_pm);
}

/* the epoch begins after the last branch has changed, and ends before the first */
static void rxe_stamp_on(enum rxe_stamp_part part, bool all)
{
	rxe_stamp_begin_use();
	mutex_lock(&rxe_stamp_lock);
	if (!rxe_stamp_used())
		rxe_stamp_choose();
	rxe_stamp_all[part] += all;
	rxe_stamp_set_skip(part);
	if (!rxe_stamp_users[part]++) {
		static_key_slow_inc(rxe_stamp_key(part));
		if (!rxe_stamp_asleep)
			rxe_stamp_next_epoch(part);
	}
	mutex_unlock(&rxe_stamp_lock);
}

static void rxe_stamp_off(enum rxe_stamp_part part, bool all)
{
	mutex_lock(&rxe_stamp_lock);
	if (!--rxe_stamp_users[part]) {
		if (!rxe_stamp_asleep)
			rxe_stamp_next_epoch(part);
		static_key_slow_dec(rxe_stamp_key(part));
	}
	rxe_stamp_all[part] -= all;
	rxe_stamp_set_skip(part);
	mutex_unlock(&rxe_stamp_lock);
	rxe_stamp_end_use();
}

int rxe_trace_on_tx(void)
{
	rxe_stamp_on(RXE_STAMP_TX, true);
	return 0;
}

void rxe_trace_off_tx(void)
{
	rxe_stamp_off(RXE_STAMP_TX, true);
}

int rxe_trace_on_rx(void)
{
	rxe_stamp_on(RXE_STAMP_RX, true);
	return 0;
}

void rxe_trace_off_rx(void)
{
	rxe_stamp_off(RXE_STAMP_RX, true);
}

int rxe_trace_on_done(void)
{
	rxe_stamp_on(RXE_STAMP_DONE, true);
	return 0;
}

void rxe_trace_off_done(void)
{
	rxe_stamp_off(RXE_STAMP_DONE, true);
}

int rxe_trace_on_tx_stamps(void)
{
	rxe_stamp_on(RXE_STAMP_TX, false);
	return 0;
}

void rxe_trace_off_tx_stamps(void)
{
	rxe_stamp_off(RXE_STAMP_TX, false);
}

int rxe_trace_on_rx_stamps(void)
{
	/* an arrival without an end would be lost, an end without one is not */
	rxe_stamp_on(RXE_STAMP_DONE, false);
	rxe_stamp_on(RXE_STAMP_RX, false);
	return 0;
}

void rxe_trace_off_rx_stamps(void)
{
	rxe_stamp_off(RXE_STAMP_RX, false);
	rxe_stamp_off(RXE_STAMP_DONE, false);
}

static int rxe_stamp_set_one_of(const char *text, const struct kernel_param *kp)
{
	enum rxe_stamp_part part;
	unsigned int n;
	int err;

	err = kstrtouint(text, 0, &n);
	if (err)
		return err;
	if (!is_power_of_2(n) || n > 4096)
		return -EINVAL;

	mutex_lock(&rxe_stamp_lock);
	WRITE_ONCE(rxe_stamp_sample, n - 1);
	for (part = 0; part < RXE_STAMP_PARTS; part++)
		rxe_stamp_set_skip(part);
	mutex_unlock(&rxe_stamp_lock);
	return 0;
}

static int rxe_stamp_get_one_of(char *text, const struct kernel_param *kp)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(rxe_stamp_sample) + 1);
}

static const struct kernel_param_ops rxe_stamp_one_of_ops = {
	.set = rxe_stamp_set_one_of,
	.get = rxe_stamp_get_one_of,
};

module_param_cb(stamp_one_of, &rxe_stamp_one_of_ops, NULL, 0644);
MODULE_PARM_DESC(stamp_one_of, "The events rxe_tx_stamps and rxe_rx_stamps are emitted for one of so many packets, a power of 2 (default: 1)");

static int rxe_stamp_get_clock(char *text, const struct kernel_param *kp)
{
	int n;

	mutex_lock(&rxe_stamp_lock);
	if (!rxe_stamp_used())
		rxe_stamp_choose();
	n = sysfs_emit(text, "%u %u\n", rxe_stamp_mult, rxe_stamp_shift);
	mutex_unlock(&rxe_stamp_lock);
	return n;
}

static const struct kernel_param_ops rxe_stamp_clock_ops = {
	.get = rxe_stamp_get_clock,
};

module_param_cb(stamp_clock, &rxe_stamp_clock_ops, NULL, 0444);
MODULE_PARM_DESC(stamp_clock, "Multiplier and shift: ns = stamp * multiplier >> shift");

/* the time of a stamp, by the clock that bpf_ktime_get_ns() reads */
static __always_inline u64 rxe_stamp_time(u64 stamp, u64 now)
{
	return ktime_get_mono_fast_ns() - rxe_stamp_ns(now - stamp);
}

/* 32 bits hold 4.29 s; the clock may step back a little across CPUs */
static noinline void rxe_trace_clamp(u32 *stage, const u64 *stamps, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		u64 ns = (s64)stamps[i] < 0 ? 0 : rxe_stamp_ns(stamps[i]);

		stage[i] = min_t(u64, ns, U32_MAX);
	}
}

static __always_inline void rxe_trace_fill_stages(u32 *stage, const u64 *stamps,
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
		rxe_trace_clamp(stage, stamps, n);
}

/* fields that are the same for all packets of a QP */
void rxe_stamp_init(struct rxe_qp *qp)
{
	enum rxe_role role;

	for (role = RXE_ROLE_REQUESTER; role <= RXE_ROLE_RESPONDER; role++) {
		struct rxe_packet_id *tx = &qp->tx_stamps[role].raw.id;
		struct rxe_packet_id *done = &qp->done_stamps[role].raw.id;

		tx->dev = rxe_trace_dev(qp);
		tx->qpn = qp_num(qp);
		tx->role = role;
		done->dev = rxe_trace_dev(qp);
		done->qpn = qp_num(qp);
		done->role = role;
	}
}

static __always_inline void rxe_trace_fill_id(struct rxe_packet_id *id,
					      struct rxe_pkt_info *pkt,
					      const struct sk_buff *skb,
					      u8 switched)
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
	id->flags = switched |
		    (pkt->mask & RXE_LOOPBACK_MASK ? RXE_FLAG_LOOPBACK : 0);
}

static __always_inline bool rxe_trace_in_sample(const struct rxe_packet_id *id)
{
	return rxe_stamp_chosen(id->psn, READ_ONCE(rxe_stamp_sample));
}

static noinline void rxe_trace_tx_packet(struct rxe_stamp_tx *s,
					 struct sk_buff *skb)
{
	const struct rxe_tx_stamps *raw = &s->raw;
	u64 stamps[RXE_TX_STAGES];
	int i;

	s->rec.id = raw->id;
	s->rec.id.begin = rxe_stamp_time(raw->id.begin, raw->end[RXE_TX_ICRC]);
	stamps[0] = raw->end[0] - raw->id.begin;
	for (i = 1; i < RXE_TX_STAGES; i++)
		stamps[i] = raw->end[i] - raw->end[i - 1];
	rxe_trace_fill_stages(s->rec.stage, stamps, RXE_TX_STAGES);
	rxe_trace_emit(rxe_tx_packet, &s->rec, skb);
}

void __rxe_trace_tx(struct rxe_pkt_info *pkt, struct sk_buff *skb)
{
	struct rxe_stamp_tx *s = &pkt->qp->tx_stamps[rxe_stamp_tx_role(pkt)];

	if (!s->open)
		return;
	__rxe_stamp_tx_end(s, RXE_TX_ICRC);
	s->open = false;
	/* the event came on, or went off, in mid-packet */
	if (s->epoch != READ_ONCE(rxe_stamp_epoch[RXE_STAMP_TX]))
		return;

	rxe_trace_fill_id(&s->raw.id, pkt, skb, rxe_stamp_switched(s->switches));
	if (trace_rxe_tx_stamps_enabled() && rxe_trace_in_sample(&s->raw.id))
		rxe_trace_emit(rxe_tx_stamps, &s->raw, skb);
	if (trace_rxe_tx_packet_enabled())
		rxe_trace_tx_packet(s, skb);
}

/*
 * Several CPUs may receive for one QP: no place in the QP would do. The stages
 * go with the packet, for rxe_rx_stamps; the top bit of the first says that they
 * are there (see rxe_stamp_rx_mark()), that of the last that the task was
 * switched out.
 */
#define RXE_ARRIVAL_MAX		((u32)S32_MAX)
#define RXE_ARRIVAL_TAKEN	BIT(31)
#define RXE_ARRIVAL_SWITCHED	BIT(31)

static __always_inline u32 rxe_stamp_arrival(u64 stamps)
{
	return (s64)stamps < 0 ? 0 : min_t(u64, stamps, RXE_ARRIVAL_MAX);
}

/* what is known on arrival */
static void rxe_trace_fill_arrival_id(struct rxe_packet_id *id,
				      struct rxe_pkt_info *pkt,
				      const struct sk_buff *skb, bool switched)
{
	id->dev = pkt->rxe->ib_dev.index;
	/* a multicast packet has not met its QPs yet */
	id->qpn = pkt->qp ? qp_num(pkt->qp) : IB_MULTICAST_QPN;
	id->role = rxe_stamp_rx_role(pkt);
	rxe_trace_fill_id(id, pkt, skb, switched ? RXE_FLAG_SWITCHED : 0);
}

static noinline void rxe_trace_rx_packet(struct sk_buff *skb, bool switched,
					 u64 parse, u64 icrc, u64 now)
{
	u64 stamps[RXE_RX_STAGES] = { parse, icrc };
	struct rxe_rx_record rec;

	rec.id.begin = rxe_stamp_time(skb->tstamp, now);
	rxe_trace_fill_arrival_id(&rec.id, SKB_TO_PKT(skb), skb, switched);
	rxe_trace_fill_stages(rec.stage, stamps, RXE_RX_STAGES);
	rxe_trace_emit(rxe_rx_packet, &rec, skb);
}

void __rxe_trace_rx(struct sk_buff *skb, u64 parsed)
{
	struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);
	u64 mark = rxe_stamp_rx_mark();
	u64 changed = mark ^ pkt->switches;
	bool switched;
	u64 now;

	/* outside the sample, or the event came on, or went off, in mid-packet */
	if (!(pkt->mask & RXE_ARRIVED_MASK) || !parsed ||
	    upper_32_bits(changed) || !(upper_32_bits(mark) & 1)) {
		pkt->mask &= ~RXE_ARRIVED_MASK;
		return;
	}
	now = rxe_stamp();
	switched = changed;
	if (trace_rxe_rx_packet_enabled())
		rxe_trace_rx_packet(skb, switched, parsed - skb->tstamp,
				    now - parsed, now);
	pkt->arrival[RXE_RX_PARSE] = rxe_stamp_arrival(parsed - skb->tstamp) |
				     RXE_ARRIVAL_TAKEN;
	pkt->arrival[RXE_RX_ICRC] = rxe_stamp_arrival(now - parsed) |
				    (switched ? RXE_ARRIVAL_SWITCHED : 0);
}

/* after: a stamp between the end of these stages and now */
static __always_inline bool rxe_trace_fill_arrival(struct rxe_rx_stamps *raw,
						   const struct rxe_pkt_info *pkt,
						   u64 after, u64 now)
{
	u32 parse = pkt->arrival[RXE_RX_PARSE];
	u32 icrc = pkt->arrival[RXE_RX_ICRC];

	if (!(pkt->mask & RXE_ARRIVED_MASK) || !(parse & RXE_ARRIVAL_TAKEN) ||
	    rxe_stamp_is_stale(RXE_STAMP_RX, after, now))
		return false;
	raw->arrival[RXE_RX_PARSE] = parse & RXE_ARRIVAL_MAX;
	raw->arrival[RXE_RX_ICRC] = icrc & RXE_ARRIVAL_MAX;
	raw->id.flags |= RXE_FLAG_ARRIVED |
			 (icrc & RXE_ARRIVAL_SWITCHED ? RXE_FLAG_RX_SWITCHED : 0);
	return true;
}

/* of such a packet nothing but the arrival is known */
void __rxe_trace_unfinished(struct sk_buff *skb)
{
	struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);
	struct rxe_rx_stamps raw = {};

	if (!(pkt->mask & RXE_ARRIVED_MASK))
		return;
	rxe_trace_fill_arrival_id(&raw.id, pkt, skb, false);
	if (rxe_trace_fill_arrival(&raw, pkt, skb->tstamp, rxe_stamp()) &&
	    rxe_trace_in_sample(&raw.id))
		rxe_trace_emit(rxe_rx_stamps, &raw, skb);
}

static noinline void rxe_trace_rx_done(struct rxe_stamp_done *s,
				       struct sk_buff *skb)
{
	s->rec.id = s->raw.id;
	s->rec.id.begin = rxe_stamp_time(s->raw.id.begin, s->last);
	rxe_trace_fill_stages(s->rec.stage, s->raw.stage, RXE_DONE_STAGES);
	rxe_trace_emit(rxe_rx_done, &s->rec, skb);
}

void __rxe_trace_done(struct rxe_stamp_done *s, struct sk_buff *skb)
{
	struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);

	if (!s->open)
		return;
	__rxe_stamp_done_switch(s, RXE_DONE_EXEC);
	s->open = false;
	if (s->epoch != READ_ONCE(rxe_stamp_epoch[RXE_STAMP_DONE])) {
		rxe_trace_unfinished(skb);
		return;
	}

	rxe_trace_fill_id(&s->raw.id, pkt, skb,
			  s->switched | rxe_stamp_switched(s->switches));
	if (trace_rxe_rx_done_enabled())
		rxe_trace_rx_done(s, skb);
	if (trace_rxe_rx_stamps_enabled() && rxe_trace_in_sample(&s->raw.id)) {
		s->raw.id.flags |= RXE_FLAG_DONE;
		rxe_trace_fill_arrival(&s->raw, pkt, s->raw.id.begin, s->last);
		rxe_trace_emit(rxe_rx_stamps, &s->raw, skb);
	}
}
