/* SPDX-License-Identifier: GPL-2.0-only */
/* Write a packet to the ring buffer: this runs for every packet. */
#ifndef PACKET_RECORD_BPF_H
#define PACKET_RECORD_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bounded.bpf.h"
#include "qp_owner.bpf.h"
#include "rxedump.h"
#include "xmit.bpf.h"

/* filters: constants at load time, so unused ones cost next to nothing */
const volatile bool filtered = false; /* by any of what follows */
const volatile bool filter_by_dev = false;
const volatile __u32 filter_qpn = 0; /* 0, the SMI's number: none */
/* not constant: a device that is made again has another one */
__u32 filter_dev = 0;
const volatile bool filter_by_opcode = false;
const volatile bool opcode_chosen[256] = {};
/* sampling: packets whose PSN's hash is not above this */
const volatile __u32 sample_highest = ~0u;

/* the most bytes of a frame that are copied */
const volatile __u32 snap_with_link = DUMP_MAX_FRAME;
const volatile __u32 snap_without_link = DUMP_MAX_FRAME - LINK_LEN;
/* wake the reader every so many records, a power of two; a timer wakes it too */
const volatile __u32 wake_every = 1;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set by the loader */
} ring SEC(".maps");

struct dump_late late_table[DUMP_SLOTS] = {};
struct dump_lost lost[LOST_DEVICES] = {};
__u32 sequence = 0;

/* a frame in kernel memory */
struct frame_at {
	const void *from;
	__u32 length, linear;
	__u32 snap;
	__u16 protocol;
	bool has_link;
};

/*
 * The multiplier is 2^32 divided by the golden ratio: it spreads consecutive PSNs evenly. Both ends
 * choose the same packets, and an acknowledgment with its request.
 */
#define SAMPLE_MULTIPLIER 0x9e3779b9u

static __noinline bool passes(__u32 dev, __u32 qpn, __u32 psn, __u8 opcode)
{
	return (!filter_by_dev || dev == filter_dev) && (!filter_qpn || qpn == filter_qpn) &&
	       (!filter_by_opcode || opcode_chosen[opcode]) &&
	       psn * SAMPLE_MULTIPLIER <= sample_highest && owner_passes(dev, qpn);
}

static __always_inline struct dump_late *late_of(__u32 seq)
{
	return &late_table[bounded(seq, DUMP_SLOTS - 1)];
}

/* the slot is complete: hand it to the reader. The exchange orders the earlier writes. */
static __always_inline void late_close(struct dump_late *late)
{
	__sync_lock_test_and_set(&late->closed, 1);
}

static __always_inline void frame_cut(struct frame_at *f, const struct sk_buff *skb, __u32 start,
				      bool has_link)
{
	__u32 length = skb->len + (__u32)(skb->data - skb->head) - start;

	f->from = skb->head + start;
	f->length = length;
	f->linear = length - skb->data_len;
	f->snap = has_link ? snap_with_link : snap_without_link;
	f->protocol = bpf_ntohs(skb->protocol);
	f->has_link = has_link;
}

/* to be sent: only the link header is missing */
static __always_inline void frame_of_sent(struct frame_at *f, const struct sk_buff *skb)
{
	frame_cut(f, skb, skb->network_header, false);
}

/* received: from the Ethernet header on, unless it was looped back or came from elsewhere */
static __always_inline void frame_of_received(struct frame_at *f, const struct sk_buff *skb)
{
	__u16 mac = skb->mac_header, network = skb->network_header;
	bool has_link = mac != 0xffff && network - mac == LINK_LEN;

	frame_cut(f, skb, has_link ? mac : network, has_link);
}

static __always_inline __u32 next_sequence(void)
{
	__u32 seq = __sync_fetch_and_add(&sequence, 1) + 1;

	if (unlikely(!seq))
		seq = __sync_fetch_and_add(&sequence, 1) + 1;
	return seq;
}

static __noinline void lose(__u32 dev, __u32 kind)
{
	struct dump_lost *l = &lost[bounded(dev, LOST_DEVICES - 1)];

	if (kind < DUMP_KINDS)
		__sync_fetch_and_add(&l->ring[kind], 1);
}

/*
 * Make the record. packet is the driver's record or our own, of which packet_size bytes are copied;
 * room for the frame must be constant to the verifier. Calibration discards the record. Returns its
 * number, or 0 if it is lost.
 */
static __always_inline __u32 record_put(enum dump_kind kind, __u32 dev, const void *packet,
					__u32 packet_size, const struct frame_at *f, __u8 reason,
					__u32 room, bool calibrating)
{
	struct dump_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r) + room, 0);
	struct dump_late *late;
	__u32 seq, captured;

	if (unlikely(!r)) {
		lose(dev, kind);
		return 0;
	}
	seq = next_sequence();
	r->seq = seq;
	r->kind = kind;
	r->reason = reason;
	r->protocol = f->protocol;
	r->has_link = f->has_link;
	r->length = f->length;
	captured = f->linear < f->snap ? f->linear : f->snap;
	asm volatile("" : "+r"(captured));
	if (captured > room)
		captured = room;
	r->captured = captured;
	bpf_probe_read_kernel(&r->id, packet_size, packet);
	bpf_probe_read_kernel(r->frame, captured, f->from);

	late = late_of(seq);
	late->seq = seq;
	late->closed = 0;
	late->drop = 0;
	late->has_link = false;
	if (calibrating)
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_submit(r,
				   seq & (wake_every - 1) ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP);
	return seq;
}

static __always_inline __u32 record(enum dump_kind kind, __u32 dev, const void *packet,
				    __u32 packet_size, const struct frame_at *f, __u8 reason)
{
/* with a short snap length the verifier finds larger rooms unreachable, and drops them */
#define TRY_ROOM(room)                                                                             \
	do {                                                                                       \
		if (snap_with_link <= (room) || f->linear <= (room))                               \
			return record_put(kind, dev, packet, packet_size, f, reason, room, false); \
	} while (0)

	TRY_ROOM(DUMP_ROOM_0);
	TRY_ROOM(DUMP_ROOM_1);
	TRY_ROOM(DUMP_ROOM_2);
	TRY_ROOM(DUMP_ROOM_3);
#undef TRY_ROOM
	return record_put(kind, dev, packet, packet_size, f, reason, DUMP_MAX_FRAME, false);
}

#endif /* PACKET_RECORD_BPF_H */
