/* SPDX-License-Identifier: GPL-2.0-only */
/* From a record to its cell, and into it. */
#ifndef CELLS_BPF_H
#define CELLS_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "bounded.bpf.h"
#include "loglin.bpf.h"
#include "qp_owner.bpf.h"
#include "stamp_clock.h"
#include "rxestat.h"

/* filters: constants at load time, so unused ones cost next to nothing */
const volatile bool filtered = false; /* by what follows */
const volatile bool filter_by_dev = false;
const volatile __u32 filter_qpn = 0; /* 0, the SMI's number: none */
/* not constant: a device that is made again has another one */
__u32 filter_dev = 0;

/* filled before loading, from lib/bth.c, lib/loglin.h and size_class.h */
const volatile __u16 class_shifted[256] = {};
const volatile __u8 size_table[SIZE_TABLE_LEN] = {};
const volatile __u32 slots = 0; /* cells in a half */
const volatile __u32 kinds = 0; /* of packets; without groups each has one cell: as many as slots */

/* ns of a stamp: lib/stamp_clock.h; a longer time than the limit has no place in bucket_table */
const volatile __u64 stamp_mult = 0;
const volatile __u64 stamp_limit = 0;

/* the half of the cells that is written, 0 or slots; the reader owns the other */
__u32 half = 0;

/* events without a cell: none was free, or another device has it */
__u64 lost = 0;

#define CELLS(kind)                                                         \
	struct {                                                            \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                    \
		__uint(max_entries, 1); /* set by the loader: two halves */ \
		__type(key, __u32);                                         \
		__type(value, struct kind##_cell);                          \
	} kind##_cells SEC(".maps")

#define SLOTS(kind)                                             \
	union slot_entry kind##_slot[KEYS] = {};                \
	__u32 kind##_group_slot[MAX_KINDS * OWNER_GROUPS] = {}; \
	__u32 kind##_used = SLOT_FIRST, kind##_group_used = SLOT_FIRST

#define cell_of(cells, slot)                         \
	({                                           \
		__u32 index_ = (slot) + half;        \
		bpf_map_lookup_elem(cells, &index_); \
	})

static __noinline bool passes(__u32 dev, __u32 qpn)
{
	return (!filter_by_dev || dev == filter_dev) && (!filter_qpn || qpn == filter_qpn) &&
	       owner_passes(dev, qpn);
}

/* the slow path: a key's first packet, or one that belongs in no cell */
static __noinline __u32 slot_claim(union slot_entry *entry, __u32 *used, __u32 key, __u32 tag)
{
	union slot_entry seen, mine = {.tag = tag};

	if ((key >> KEY_SIZE_BITS & (MAX_CLASSES - 1)) == CLASS_IGNORED)
		return SLOT_NONE;
	if (*used >= kinds || (mine.slot = __sync_fetch_and_add(used, 1)) >= kinds)
		goto lost;
	/* a race for one key wastes a slot, nothing else */
	seen.word = __sync_val_compare_and_swap(&entry->word, 0, mine.word);
	if (!seen.word)
		return mine.slot;
	if (seen.tag == tag)
		return seen.slot;
lost:
	__sync_fetch_and_add(&lost, 1);
	return SLOT_NONE;
}

/* the same for the first packet of a kind in a group */
static __noinline __u32 group_slot_claim(__u32 *entry, __u32 *used)
{
	__u32 seen, mine;

	if (*used < slots && (mine = __sync_fetch_and_add(used, 1)) < slots) {
		seen = __sync_val_compare_and_swap(entry, SLOT_NONE, mine);
		return seen ?: mine;
	}
	__sync_fetch_and_add(&lost, 1);
	return SLOT_NONE;
}

static __always_inline __u32 slot_in_group(__u32 dev, __u32 qpn, __u32 kind, __u32 *table,
					   __u32 *used)
{
	__u32 at = kind * OWNER_GROUPS + owner_of(dev, qpn);
	__u32 *entry = &table[bounded(at, MAX_KINDS * OWNER_GROUPS - 1)];
	__u32 slot = *entry;

	return unlikely(slot == SLOT_NONE) ? group_slot_claim(entry, used) : slot;
}

/* the cell's number, or the kind's; SLOT_NONE if the packet is filtered out or lost */
static __always_inline __u32 slot_of(__u32 dev, __u32 qpn, __u8 opcode, __u32 net, __u16 payload,
				     union slot_entry *table, __u32 *used)
{
	union slot_entry *entry;
	__u32 key;

	if (filtered && !passes(dev, qpn))
		return SLOT_NONE;
	key = dev << KEY_DEV_SHIFT | net << KEY_NET_SHIFT | class_shifted[opcode] |
	      size_table[(payload + (1 << SIZE_UNIT_BITS) - 1) >> SIZE_UNIT_BITS];
	key = bounded(key, KEYS - 1);
	entry = &table[key];
	if (unlikely(entry->tag != dev + 1))
		return slot_claim(entry, used, key, dev + 1);
	return entry->slot;
}

/* the cell's number; id: of a record of the driver or of our own */
#define SLOT_OF(id, kind)                                                                      \
	({                                                                                     \
		__u32 slot_ = slot_of((id).dev, (id).qpn, (id).opcode, (id).net, (id).payload, \
				      kind##_slot, &kind##_used);                              \
                                                                                               \
		owner_by &&slot_ != SLOT_NONE                                                  \
			? slot_in_group((id).dev, (id).qpn, slot_, kind##_group_slot,          \
					&kind##_group_used)                                    \
			: slot_;                                                               \
	})

static __always_inline void account_range(struct stage_sum *sum, __u64 ns)
{
	if (unlikely(ns < sum->min))
		sum->min = ns;
	if (unlikely(ns > sum->max))
		sum->max = ns;
}

/* the slow path of a value that the table does not cover: all but the count; returns the bucket */
static __noinline __u32 account_far(struct stage_sum *sum, __u32 ns)
{
	sum->far += ns;
	account_range(sum, ns);
	return bucket_beyond_table(ns);
}

/*
 * Add a value to the histogram at bucket_offset of the cell. The two sums are written in asm
 * because clang would spend three instructions on each: it computes cell + bucket_offset, although
 * BPF can have the constant in the load.
 */
static __always_inline void account(void *cell, struct stage_sum *sum, __u32 bucket_offset,
				    const volatile __u8 *table, __u64 ns)
{
	__u64 at;

	/*
	 * clang 14 may have two stages in one register; the verifier of 6.1 wants the bound to be
	 * of what is shifted. 64 bits wide, so that nothing is cut off and extended again.
	 */
	asm volatile("" : "+r"(ns));
	if (unlikely(ns >= 1 << LOGLIN_TABLE_BITS)) {
		at = bounded(account_far(sum, ns), LOGLIN_SLOTS - 1);
		ns = 0;
	} else {
		account_range(sum, ns);
		at = ns >> LOGLIN_UNIT_BITS;
		asm("%0 += %1" : "+r"(at) : "r"(table));
		at = *(const volatile __u8 *)at;
	}
	at *= sizeof(__u64);
	asm("%0 += %1" : "+r"(at) : "r"(cell));
	*(__u64 *)(at + bucket_offset) += ns + PACKED_ONE;
}

/* the slow path of account_stamps(): too long for the table, or the clock stepped back */
static __noinline __u32 stamps_beyond_table(__u64 stamps)
{
	if ((__s64)stamps < 0)
		return 0;
	if (stamps >> 32)
		return ~0u;
	stamps = stamps * stamp_mult >> STAMP_SHIFT;
	return stamps >> 32 ? ~0u : stamps;
}

/* the same of a time in stamps; see account() for asm */
static __always_inline void account_stamps(void *cell, struct stage_sum *sum, __u32 bucket_offset,
					   const volatile __u8 *table, __u64 mult, __u64 limit,
					   __u64 stamps)
{
	__u64 ns, at;

	if (unlikely(stamps >= limit)) {
		at = bounded(account_far(sum, stamps_beyond_table(stamps)), LOGLIN_SLOTS - 1);
		ns = 0;
	} else {
		ns = bounded(stamps * mult >> STAMP_SHIFT, (1 << LOGLIN_TABLE_BITS) - 1);
		account_range(sum, ns);
		at = ns >> LOGLIN_UNIT_BITS;
		asm("%0 += %1" : "+r"(at) : "r"(table));
		at = *(const volatile __u8 *)at;
	}
	at *= sizeof(__u64);
	asm("%0 += %1" : "+r"(at) : "r"(cell));
	*(__u64 *)(at + bucket_offset) += ns + PACKED_ONE;
}

/* the packet's task was switched out: its stages contain other work */
static __always_inline bool skip_switched(struct cell_head *head, bool switched, bool slept)
{
	if (!switched)
		return false;
	head->switched++;
	if (slept)
		head->slept++;
	return true;
}

/* optional: bits of the stages that a packet need not pass; their 0 is no value */
#define ACCOUNT_STAGES(cell, r, stages, optional)                                     \
	do {                                                                          \
		const volatile __u8 *table_ = bucket_table;                           \
		const __u32 *stage_ = (r)->stage;                                     \
                                                                                      \
		/* one register each for all stages, and offsets in the loads */      \
		asm volatile("" : "+r"(table_), "+r"(stage_));                        \
		_Pragma("unroll") for (int i_ = 0; i_ < (stages); i_++)               \
		{                                                                     \
			if (stage_[i_] || !((optional) & 1 << i_))                    \
				account((cell), &(cell)->sum[i_],                     \
					__builtin_offsetof(typeof(*(cell)), bucket) + \
						i_ * sizeof((cell)->bucket[0]),       \
					table_, stage_[i_]);                          \
		}                                                                     \
	} while (0)

/* time(i): of stage i, in stamps; each is evaluated once, in order */
#define ACCOUNT_STAMPS(cell, time, stages, optional)                                         \
	do {                                                                                 \
		const volatile __u8 *table_ = bucket_table;                                  \
		__u64 mult_ = stamp_mult, limit_ = stamp_limit;                              \
                                                                                             \
		asm volatile("" : "+r"(table_));                                             \
		_Pragma("unroll") for (int i_ = 0; i_ < (stages); i_++)                      \
		{                                                                            \
			__u64 stamps_ = time(i_);                                            \
                                                                                             \
			if (stamps_ || !((optional) & 1 << i_))                              \
				account_stamps((cell), &(cell)->sum[i_],                     \
					       __builtin_offsetof(typeof(*(cell)), bucket) + \
						       i_ * sizeof((cell)->bucket[0]),       \
					       table_, mult_, limit_, stamps_);              \
		}                                                                            \
	} while (0)

#endif /* CELLS_BPF_H */
