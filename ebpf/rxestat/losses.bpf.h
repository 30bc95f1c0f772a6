/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver's rare events, counted by device and reason, and by the owner's group. */
#ifndef LOSSES_BPF_H
#define LOSSES_BPF_H

#include "cells.bpf.h"
#include "drop.bpf.h"
#include "loss.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOSS_PLACES); /* with groups, set by the loader: so many for each */
	__type(key, __u32);
	__type(value, struct loss_place);
} losses SEC(".maps");

static __noinline struct loss_place *loss_place_of(__u32 dev, __u32 group)
{
	__u32 first = group * LOSS_PLACES;
	__u32 at = first + bounded(dev, DEV_PLACES - 1), tag = dev + 1; /* 0: no device */
	struct loss_place *place = bpf_map_lookup_elem(&losses, &at);

	if (place && tag &&
	    (place->tag == tag || !__sync_val_compare_and_swap(&place->tag, 0, tag)))
		return place;
	at = first + DEV_PLACES;
	return bpf_map_lookup_elem(&losses, &at);
}

static __always_inline void count_loss(__u32 dev, __u32 qpn, enum loss_event event, __u32 reason)
{
	struct loss_place *place;

	if ((filtered && !passes(dev, qpn)) || reason >= LOSS_REASONS)
		return;
	place = loss_place_of(dev, owner_by ? owner_of(dev, qpn) : OWNER_UNKNOWN);
	if (place)
		__sync_fetch_and_add(&place->count[event][bounded(reason, LOSS_REASONS - 1)], 1);
}

static __always_inline void count_drop(__u32 dev, __u32 qpn, __u32 opcode, __u32 reason)
{
	if (class_shifted[bounded(opcode, 0xff)] != CLASS_IGNORED << KEY_SIZE_BITS)
		count_loss(dev, qpn, LOSS_DROP, reason);
}

/* why there are two: lib/drop.bpf.h */
SEC("raw_tp/rxe_drop")
int BPF_PROG(rxe_drop_late, const struct sk_buff *skb, __u32 dev, __u32 qpn, __u32 psn,
	     __u32 opcode, __u32 reason)
{
	if (drop_is_in_task(reason))
		count_drop(dev, qpn, opcode, reason);
	return 0;
}

SEC("raw_tp/rxe_drop")
int BPF_PROG(rxe_drop, const struct sk_buff *skb, __u32 dev, __u32 qpn, __u32 psn, __u32 opcode,
	     __u32 reason)
{
	if (!drop_is_in_task(reason))
		count_drop(dev, qpn, opcode, reason);
	return 0;
}

SEC("raw_tp/rxe_retransmit")
int BPF_PROG(rxe_retransmit, __u32 dev, __u32 qpn, __u32 psn, __u32 next_psn, __u32 reason)
{
	count_loss(dev, qpn, LOSS_RETRANSMIT, reason);
	return 0;
}

SEC("raw_tp/rxe_timeout")
int BPF_PROG(rxe_timeout, __u32 dev, __u32 qpn)
{
	count_loss(dev, qpn, LOSS_TIMEOUT, 0);
	return 0;
}

SEC("raw_tp/rxe_nak")
int BPF_PROG(rxe_nak, __u32 dev, __u32 qpn, __u32 psn, __u32 syndrome, __u32 dir)
{
	count_loss(dev, qpn, LOSS_NAK, dir);
	return 0;
}

SEC("raw_tp/rxe_rnr")
int BPF_PROG(rxe_rnr, __u32 dev, __u32 qpn, __u32 psn, __u32 timer, __u32 step)
{
	count_loss(dev, qpn, LOSS_RNR, step);
	return 0;
}

SEC("raw_tp/rxe_cq_error")
int BPF_PROG(rxe_cq_error, __u32 dev)
{
	count_loss(dev, 0, LOSS_CQ_ERROR, 0);
	return 0;
}

#endif /* LOSSES_BPF_H */
