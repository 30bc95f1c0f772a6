// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each packet of rdma_rxe with its stages: from the events of the instrumented driver, or, on the
 * stock one, from its functions (stock.bpf.h).
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "drop.bpf.h"
#include "rxedump.h"
#include "packet_record.bpf.h"
#include "late_stages.bpf.h"
#include "stock.bpf.h"
#include "calibrate.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define PASSES(id) (!filtered || passes((id).dev, (id).qpn, (id).psn, (id).opcode))

/* 6.12 and later: to the verifier, arguments of a module's tracepoint may be NULL */

SEC("tp_btf/rxe_tx_packet")
int BPF_PROG(rxe_tx_packet, const struct rxe_tx_record *r, const struct sk_buff *skb)
{
	struct xmit_pending *pending = xmit_entry(skb);
	struct frame_at f;
	__u32 seq;

	/* what waited under this address is another packet, and will not come any more */
	pending->skb = 0;
	if (!r || !skb || !PASSES(r->id))
		return 0;
	frame_of_sent(&f, skb);
	seq = record(DUMP_TX, r->id.dev, r, sizeof(struct packet_tx), &f, 0);
	if (seq && !(r->id.flags & RXE_FLAG_LOOPBACK))
		xmit_hold(pending, seq, r->id.dqpn, r->id.psn, (__u64)skb);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(net_dev_start_xmit, const struct sk_buff *skb, const struct net_device *dev)
{
	struct xmit_pending *pending = xmit_entry(skb);
	struct dump_late *late;
	__u64 ns;

	if (pending->skb != (__u64)skb)
		return 0;
	ns = bpf_ktime_get_ns() - pending->start;
	late = late_of(pending->slot);
	if (late->seq != pending->slot || !xmit_is_ours(pending, skb)) {
		pending->skb = 0;
		return 0;
	}
	/* a device below may see it behind a VLAN tag */
	if (!late->has_link) {
		late->has_link = skb->head + skb->network_header - skb->data == LINK_LEN;
		bpf_probe_read_kernel(late->link, LINK_LEN, skb->data);
	}
	if (xmit_is_on_top(dev))
		return 0;
	pending->skb = 0;
	late->start = pending->start;
	late->xmit_ns = ns < ~0u ? ns : ~0u;
	late_close(late);
	return 0;
}

SEC("tp_btf/rxe_rx_packet")
int BPF_PROG(rxe_rx_packet, const struct rxe_rx_record *r, const struct sk_buff *skb)
{
	struct done_pending *stale = done_find(skb);
	struct frame_at f;
	__u32 seq;

	if (stale)
		stale->skb = 0;
	if (!r || !skb || !PASSES(r->id))
		return 0;
	frame_of_received(&f, skb);
	seq = record(DUMP_RX, r->id.dev, r, sizeof(struct packet_rx), &f, 0);
	if (seq)
		done_hold(skb, seq, r->id.psn);
	return 0;
}

SEC("tp_btf/rxe_rx_done")
int BPF_PROG(rxe_rx_done, const struct rxe_done_record *r, const struct sk_buff *skb)
{
	struct done_pending *p = done_find(skb);
	struct dump_late *late;

	if (!p || !r)
		return 0;
	p->skb = 0;
	late = late_of(p->seq);
	if (late->seq != p->seq || r->id.psn != p->psn)
		return 0;
	late->start = r->id.begin;
	late->flags = r->id.flags;
#pragma unroll
	for (int i = 0; i < RXE_DONE_STAGES; i++)
		late->stage[i] = r->stage[i];
	late_close(late);
	return 0;
}

/* of packets that have met their queue pair: they have a record, if they were to have one */
static __always_inline bool drop_is_of_recorded(__u32 reason)
{
	return reason == DROP_SEQUENCE || reason == DROP_NO_RQ_WQE || reason == DROP_UNEXPECTED ||
	       reason == DROP_FLUSHED || reason == DROP_MCAST_GROUP || reason == DROP_MCAST_QP;
}

/* no rxe_rx_done will follow */
static __always_inline bool drop_is_final(__u32 reason)
{
	return reason == DROP_FLUSHED || reason == DROP_MCAST_GROUP || reason == DROP_MCAST_QP;
}

/* false: it has no record */
static __always_inline bool drop_of_received(const struct sk_buff *skb, __u32 psn, __u32 reason)
{
	struct done_pending *p = done_find(skb);
	struct dump_late *late;

	if (!p || p->psn != psn)
		return false;
	late = late_of(p->seq);
	if (late->seq != p->seq)
		return false;
	late->drop = reason;
	if (drop_is_final(reason)) {
		late->start = 0;
		late->flags = 0;
		p->skb = 0;
		late_close(late);
	}
	return true;
}

static __always_inline void on_drop(const struct sk_buff *skb, __u32 dev, __u32 qpn, __u32 psn,
				    __u32 opcode, __u32 reason)
{
	struct packet_id id = {};
	struct frame_at f = {};

	if (skb && (drop_of_received(skb, psn, reason) || drop_is_of_recorded(reason)))
		return;
	if (filtered && !passes(dev, qpn, psn, opcode))
		return;
	if (skb && reason == DROP_SEND_STATE)
		frame_of_sent(&f, skb);
	else if (skb)
		frame_of_received(&f, skb);
	id.begin = bpf_ktime_get_ns();
	id.dev = dev;
	id.qpn = qpn;
	id.psn = psn;
	id.opcode = opcode;
	record(DUMP_DROP, dev, &id, sizeof(id), &f, reason);
}

/* why there are two: lib/drop.bpf.h */
SEC("tp_btf/rxe_drop")
int BPF_PROG(rxe_drop_late, const struct sk_buff *skb, __u32 dev, __u32 qpn, __u32 psn,
	     __u32 opcode, __u32 reason)
{
	if (drop_is_in_task(reason))
		on_drop(skb, dev, qpn, psn, opcode, reason);
	return 0;
}

SEC("tp_btf/rxe_drop")
int BPF_PROG(rxe_drop, const struct sk_buff *skb, __u32 dev, __u32 qpn, __u32 psn, __u32 opcode,
	     __u32 reason)
{
	if (!drop_is_in_task(reason))
		on_drop(skb, dev, qpn, psn, opcode, reason);
	return 0;
}

static __always_inline __u32 stock_sent(const struct packet_tx *r, const struct sk_buff *skb)
{
	struct frame_at f;
	__u32 seq;

	if (!skb || !PASSES(r->id))
		return 0;
	frame_of_sent(&f, skb);
	seq = record(DUMP_TX, r->id.dev, r, sizeof(*r), &f, 0);
	return r->id.flags & RXE_FLAG_LOOPBACK ? 0 : seq;
}

static __always_inline void stock_received(const struct packet_rx *r, const struct sk_buff *skb)
{
	struct frame_at f;

	if (!skb || !PASSES(r->id))
		return;
	frame_of_received(&f, skb);
	record(DUMP_RX, r->id.dev, r, sizeof(*r), &f, 0);
}

/* no memory to follow a packet, whose device is not known yet */
static __always_inline void stock_lost(void)
{
	lose(0, DUMP_TX);
}

/*
 * Calibration, by BPF_PROG_TEST_RUN before anything is attached: the same code on records of our
 * own. What it leaves out is the way from the tracepoint to the program.
 */
struct calibration_records calibrate_record = {};

static __always_inline void calibrate_frame(struct frame_at *f, bool has_link)
{
	f->from = calibrate_record.frame;
	f->length = f->linear = DUMP_ROOM_0;
	f->snap = has_link ? snap_with_link : snap_without_link;
	f->protocol = ETH_P_IP;
	f->has_link = has_link;
}

SEC("socket")
int calibrate_tx(struct __sk_buff *ctx)
{
	const struct packet_tx *r = &calibrate_record.tx;
	struct frame_at f;
	__u32 seq;

	if (!PASSES(r->id))
		return 0;
	calibrate_frame(&f, false);
	seq = record_put(DUMP_TX, 0, r, sizeof(*r), &f, 0, DUMP_ROOM_0, true);
	xmit_hold(&xmit_table[0], seq, r->id.dqpn, r->id.psn, 0);
	return 0;
}

SEC("socket")
int calibrate_xmit(struct __sk_buff *ctx)
{
	struct xmit_pending *pending = &xmit_table[0];
	struct dump_late *late = late_of(pending->slot);

	late->start = pending->start;
	late->xmit_ns = bpf_ktime_get_ns() - pending->start;
	bpf_probe_read_kernel(late->link, LINK_LEN, calibrate_record.frame);
	late_close(late);
	return 0;
}

SEC("socket")
int calibrate_rx(struct __sk_buff *ctx)
{
	const struct packet_rx *r = &calibrate_record.rx;
	struct frame_at f;
	__u32 seq;

	if (!PASSES(r->id))
		return 0;
	calibrate_frame(&f, true);
	seq = record_put(DUMP_RX, 0, r, sizeof(*r), &f, 0, DUMP_ROOM_0, true);
	done_table[0].seq = seq;
	return 0;
}

SEC("socket")
int calibrate_done(struct __sk_buff *ctx)
{
	const struct packet_done *r = &calibrate_record.done;
	struct dump_late *late = late_of(done_table[0].seq);

	late->start = r->id.begin;
	late->flags = r->id.flags;
#pragma unroll
	for (int i = 0; i < RXE_DONE_STAGES; i++)
		late->stage[i] = r->stage[i];
	late_close(late);
	return 0;
}
