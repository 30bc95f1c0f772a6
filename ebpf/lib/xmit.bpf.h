/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures from the driver's last touch to the device. The driver cannot see this, so the address
 * of the packet's skb is stored until net:net_dev_start_xmit sees that address. A device on top of
 * others (VLAN, bond, macvlan) hands the packet on to one of them, with a queueing discipline of
 * its own: the stage ends at the lowest one.
 *
 * The table is direct-mapped, indexed by address, and so bounded. An entry lives until its
 * packet reaches the device or another rxe packet takes its place: of a hundred that wait in a
 * queueing discipline, in ten slabs, two share an entry once in fifty times. A packet that
 * netfilter dropped leaves a stale entry. Every rxe packet clears its entry first. Another
 * packet in recycled memory is recognised because it lacks the destructor that rxe gives its
 * packets or, if a queueing discipline has removed that (netem does), has another QP and PSN
 * in the transport header.
 */
#ifndef ROCELAB_XMIT_BPF_H
#define ROCELAB_XMIT_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bounded.bpf.h"
#include "rxe_record.h"
#include "xmit.h"

/* skbs are 256 bytes apart in their slab: neighbours never share an entry */
#define XMIT_ADDRESS_SHIFT 8

#define ETH_P_IBOE	   0x8915 /* RoCE v1 */
#define UDP_HEADER_LEN	   8
#define GRH_LEN		   40

struct sk_buff {
	void (*destructor)(struct sk_buff *skb);
	unsigned char *head, *data;
	unsigned int len, data_len;
	__be16 protocol;
	__u16 mac_header;
	__u16 network_header;
	__u16 transport_header;
	char cb[48];
} ROCELAB_CORE;

struct list_head {
	struct list_head *next;
} ROCELAB_CORE;

struct net_device {
	struct {
		struct list_head lower;
	} adj_list;
} ROCELAB_CORE;

struct bth {
	__u8 opcode, flags;
	__be16 pkey;
	__be32 dqpn; /* low 24 bits; above: FECN, BECN, reserved */
	__be32 psn;  /* low 24 bits; above: acknowledge request, reserved */
};

struct xmit_pending xmit_table[XMIT_ENTRIES] = {};

/* rxe_skb_tx_dtor in /proc/kallsyms; 0 if it is not there */
const volatile __u64 rxe_destructor = 0;

static __always_inline struct xmit_pending *xmit_entry(const struct sk_buff *skb)
{
	__u32 low;

	/* only a 32-bit move makes a number of a pointer in the verifier's eyes */
	asm volatile("%0 = %1" : "=w"(low) : "w"((__u32)(unsigned long)skb));
	return &xmit_table[bounded(low >> XMIT_ADDRESS_SHIFT, XMIT_ENTRIES - 1)];
}

/* the clock is read last, to keep our own cost out of the stage */
static __always_inline void xmit_hold(struct xmit_pending *pending, __u32 slot, __u32 dqpn,
				      __u32 psn, __u64 skb)
{
	pending->slot = slot;
	pending->dqpn = dqpn;
	pending->psn = psn;
	pending->skb = skb;
	pending->start = bpf_ktime_get_ns();
}

static __noinline bool xmit_same_header(const struct xmit_pending *pending,
					const struct sk_buff *skb)
{
	struct bth bth;
	__u32 offset;

	offset = bpf_ntohs(skb->protocol) == ETH_P_IBOE ? skb->network_header + GRH_LEN
							: skb->transport_header + UDP_HEADER_LEN;
	if (bpf_probe_read_kernel(&bth, sizeof(bth), skb->head + offset))
		return false;
	return (bpf_ntohl(bth.dqpn) & 0xffffff) == pending->dqpn &&
	       (bpf_ntohl(bth.psn) & 0xffffff) == (pending->psn & 0xffffff);
}

static __always_inline bool xmit_is_on_top(const struct net_device *dev)
{
	return (__u64)dev->adj_list.lower.next != (__u64)&dev->adj_list.lower;
}

static __always_inline bool xmit_is_ours(const struct xmit_pending *pending,
					 const struct sk_buff *skb)
{
	return (rxe_destructor && (__u64)skb->destructor == rxe_destructor) ||
	       xmit_same_header(pending, skb);
}

#endif /* ROCELAB_XMIT_BPF_H */
