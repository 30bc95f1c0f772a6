/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stages of the stock driver, from its functions that can be probed. There are fewer stages, and
 * each contains the cost of the probes at its two edges.
 *
 *   rxe_init_packet    |alloc|
 *   rxe_prepare               bth |net, with the route in it|
 *   rxe_xmit_packet                                          copy |
 *   rxe_icrc_generate                                              icrc | xmit, until the device
 *
 *   rxe_udp_encap_recv (looped back: rxe_rcv) |parse
 *   rxe_icrc_check                                  |icrc|
 */
#ifndef ROCELAB_STOCK_BPF_H
#define ROCELAB_STOCK_BPF_H

#include <bpf/bpf_tracing.h>

#include "rxe_record.h"
#include "rxe_types.bpf.h"
#include "xmit.bpf.h"

enum rxe_hdr_mask { RXE_LOOPBACK_MASK = 1 };

#define ETH_P_IP   0x0800
#define ETH_P_IPV6 0x86dd

/* BTH, extended headers and ICRC, by opcode: lib/bth.c */
const volatile __u8 overhead[256] = {};

/* the receive handler cannot be probed: a packet starts in rxe_rcv */
const volatile bool arrival_in_rcv = false;

/* defined by the probe; what stock_sent() returns is kept until the packet reaches the device */
static __always_inline __u32 stock_sent(const struct packet_tx *r, const struct sk_buff *skb);
static __always_inline void stock_received(const struct packet_rx *r, const struct sk_buff *skb);
/* packets that could not be followed */
static __always_inline void stock_lost(void);

/* a packet between its first and last edge; key: address of its skb, or of its info before that */
struct stock_pending {
	__u64 begin; /* time of the first edge */
	__u64 last;  /* of the last */
	__u32 ended; /* bits of stages */
	__u32 stage[RXE_TX_STAGES];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, struct stock_pending);
} stock_packets SEC(".maps");

static __always_inline void stock_begin(__u64 key)
{
	struct stock_pending fresh = {.begin = bpf_ktime_get_ns()};

	fresh.last = fresh.begin;
	if (bpf_map_update_elem(&stock_packets, &key, &fresh, BPF_ANY))
		stock_lost();
}

/* end a stage; the clock is read first at an end, and last at a beginning */
static __always_inline struct stock_pending *stock_edge(__u64 key, int stage)
{
	__u64 now = bpf_ktime_get_ns();
	struct stock_pending *p = bpf_map_lookup_elem(&stock_packets, &key);

	if (!p)
		return NULL;
	p->stage[stage] = now - p->last;
	p->ended |= 1 << stage;
	p->last = now;
	return p;
}

/* an edge that a nested run of its program missed would merge two stages */
#define STOCK_TX_BIT(id, name, capsule, passed, stock) | (stock) << RXE_TX_##id
#define STOCK_RX_BIT(id, name, capsule, passed, stock) | (stock) << RXE_RX_##id
#define STOCK_TX_STAGES				       (0 TX_PACKET_STAGES(STOCK_TX_BIT))
#define STOCK_RX_STAGES				       (0 RX_PACKET_STAGES(STOCK_RX_BIT))

/* the record is complete, or dropped: then the kernel has counted the miss */
static __always_inline bool stock_end(__u64 key, const struct stock_pending *p,
				      struct packet_id *id, __u32 *stage, int stages, __u32 wanted)
{
	bool whole = p && p->ended == wanted;

	if (whole) {
		id->begin = p->begin;
		__builtin_memcpy(stage, p->stage, stages * sizeof(*stage));
	}
	if (p)
		bpf_map_delete_elem(&stock_packets, &key);
	return whole;
}

static __always_inline bool stock_identify(struct packet_id *id, const struct rxe_pkt_info *pkt,
					   const struct sk_buff *skb)
{
	__u16 paylen = BPF_CORE_READ(pkt, paylen);
	struct bth bth;

	if (bpf_probe_read_kernel(&bth, sizeof(bth), BPF_CORE_READ(pkt, hdr)))
		return false;
	id->dqpn = bpf_ntohl(bth.dqpn) & 0xffffff;
	id->paylen = paylen;

	id->dev = BPF_CORE_READ(pkt, rxe, ib_dev.index);
	id->qpn = BPF_CORE_READ(pkt, qp, ibqp.qp_num);
	id->psn = BPF_CORE_READ(pkt, psn);
	id->opcode = BPF_CORE_READ(pkt, opcode);
	switch (bpf_ntohs(BPF_CORE_READ(skb, protocol))) {
	case ETH_P_IP:
		id->net = RXE_NET_V2_IPV4;
		break;
	case ETH_P_IPV6:
		id->net = RXE_NET_V2_IPV6;
		break;
	default:
		return false;
	}
	/* with the pad, which never reaches into the next size class */
	id->payload = paylen > overhead[id->opcode] ? paylen - overhead[id->opcode] : 0;
	id->flags = 0;
	if (BPF_CORE_READ(pkt, mask) & bpf_core_enum_value(enum rxe_hdr_mask, RXE_LOOPBACK_MASK))
		id->flags = RXE_FLAG_LOOPBACK;
	return true;
}

SEC("fentry/rxe_init_packet")
int BPF_PROG(stock_init_begin, struct rxe_dev *rxe, void *av, int paylen, struct rxe_pkt_info *pkt)
{
	stock_begin((__u64)pkt);
	return 0;
}

SEC("fexit/rxe_init_packet")
int BPF_PROG(stock_init_end, struct rxe_dev *rxe, void *av, int paylen, struct rxe_pkt_info *pkt,
	     struct sk_buff *skb)
{
	struct stock_pending *p = stock_edge((__u64)pkt, RXE_TX_ALLOC);
	__u64 from = (__u64)pkt, to = (__u64)skb;

	if (p && to) {
		struct stock_pending moved = *p;

		moved.last = bpf_ktime_get_ns();
		if (bpf_map_update_elem(&stock_packets, &to, &moved, BPF_ANY))
			stock_lost();
	}
	bpf_map_delete_elem(&stock_packets, &from);
	return 0;
}

SEC("fentry/rxe_prepare")
int BPF_PROG(stock_prepare_begin, void *av, struct rxe_pkt_info *pkt, struct sk_buff *skb)
{
	stock_edge((__u64)skb, RXE_TX_BTH);
	return 0;
}

SEC("fexit/rxe_prepare")
int BPF_PROG(stock_prepare_end, void *av, struct rxe_pkt_info *pkt, struct sk_buff *skb)
{
	stock_edge((__u64)skb, RXE_TX_NET);
	return 0;
}

SEC("fentry/rxe_xmit_packet")
int BPF_PROG(stock_xmit_packet, struct rxe_qp *qp, struct rxe_pkt_info *pkt, struct sk_buff *skb)
{
	stock_edge((__u64)skb, RXE_TX_COPY);
	return 0;
}

SEC("fexit/rxe_icrc_generate")
int BPF_PROG(stock_icrc_generate, struct sk_buff *skb, struct rxe_pkt_info *pkt)
{
	struct stock_pending *p = stock_edge((__u64)skb, RXE_TX_ICRC);
	struct xmit_pending *pending = xmit_entry(skb);
	struct packet_tx r = {};
	__u64 key = (__u64)skb;
	__u32 slot;

	pending->skb = 0;
	if (!stock_end(key, p, &r.id, r.stage, RXE_TX_STAGES, STOCK_TX_STAGES) ||
	    !stock_identify(&r.id, pkt, skb))
		return 0;
	slot = stock_sent(&r, skb);
	if (slot)
		xmit_hold(pending, slot, r.id.dqpn, r.id.psn, key);
	return 0;
}

SEC("fentry/rxe_udp_encap_recv")
int BPF_PROG(stock_arrival, void *sk, struct sk_buff *skb)
{
	stock_begin((__u64)skb);
	return 0;
}

/* looped back packets start here */
SEC("fentry/rxe_rcv")
int BPF_PROG(stock_rcv, struct sk_buff *skb)
{
	const struct rxe_pkt_info *pkt = (const void *)skb->cb;

	if (arrival_in_rcv ||
	    BPF_CORE_READ(pkt, mask) & bpf_core_enum_value(enum rxe_hdr_mask, RXE_LOOPBACK_MASK))
		stock_begin((__u64)skb);
	return 0;
}

SEC("fentry/rxe_icrc_check")
int BPF_PROG(stock_icrc_check_begin, struct sk_buff *skb, struct rxe_pkt_info *pkt)
{
	stock_edge((__u64)skb, RXE_RX_PARSE);
	return 0;
}

SEC("fexit/rxe_icrc_check")
int BPF_PROG(stock_icrc_check_end, struct sk_buff *skb, struct rxe_pkt_info *pkt, int err)
{
	struct stock_pending *p = stock_edge((__u64)skb, RXE_RX_ICRC);
	struct packet_rx r = {};
	__u64 key = (__u64)skb;

	if (!stock_end(key, p, &r.id, r.stage, RXE_RX_STAGES, STOCK_RX_STAGES))
		return 0;
	if (!err && stock_identify(&r.id, pkt, skb))
		stock_received(&r, skb);
	return 0;
}

#endif /* ROCELAB_STOCK_BPF_H */
