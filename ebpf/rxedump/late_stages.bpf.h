/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A received packet between its arrival and its end: the number of its record, by the address of
 * its skb. Like xmit.bpf.h's table this one is mapped by address and so bounded; queues of
 * received packets are longer, so an address has two places.
 */
#ifndef LATE_STAGES_BPF_H
#define LATE_STAGES_BPF_H

#include "packet_record.bpf.h"

struct done_pending done_table[DONE_ENTRIES] = {};
/* packets whose place was taken before they ended */
__u64 done_displaced = 0;

static __always_inline __u32 done_index(const struct sk_buff *skb)
{
	__u32 low;

	asm volatile("%0 = %1" : "=w"(low) : "w"((__u32)(unsigned long)skb));
	return low >> XMIT_ADDRESS_SHIFT;
}

static __always_inline struct done_pending *done_place(__u32 index)
{
	return &done_table[bounded(index, DONE_ENTRIES - 1)];
}

static __always_inline struct done_pending *done_find(const struct sk_buff *skb)
{
	__u32 index = done_index(skb);
	struct done_pending *p = done_place(index);

	if (p->skb == (__u64)skb)
		return p;
	p = done_place(index ^ 1);
	return p->skb == (__u64)skb ? p : NULL;
}

static __always_inline void done_hold(const struct sk_buff *skb, __u32 seq, __u32 psn)
{
	__u32 index = done_index(skb);
	struct done_pending *p = done_place(index);

	if (unlikely(p->skb)) {
		struct done_pending *other = done_place(index ^ 1);

		if (other->skb)
			__sync_fetch_and_add(&done_displaced, 1);
		else
			p = other;
	}
	p->seq = seq;
	p->psn = psn;
	p->skb = (__u64)skb;
}

#endif /* LATE_STAGES_BPF_H */
