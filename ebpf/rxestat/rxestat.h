/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What rxestat's BPF programs and its reader agree on. */
#ifndef RXESTAT_H
#define RXESTAT_H

#include <linux/types.h>

#include "loglin.h"
#include "owner_group.h"
#include "packed_bucket.h"
#include "rxe_record.h"
#include "xmit.h"

/*
 * A cell holds the stages of all packets of one kind: device, network layer, service and opcode
 * class, size class. Its number, the slot, is assigned to the first such packet and kept in a plain
 * array indexed by the key: one load on the hot path instead of a hash.
 */
#define KEY_SIZE_BITS  4
#define KEY_CLASS_BITS 5
#define KEY_NET_BITS   2
#define KEY_DEV_BITS   4
#define KEY_NET_SHIFT  (KEY_SIZE_BITS + KEY_CLASS_BITS)
#define KEY_DEV_SHIFT  (KEY_NET_SHIFT + KEY_NET_BITS)
#define KEYS	       (1 << (KEY_DEV_SHIFT + KEY_DEV_BITS))
#define DEV_PLACES     (1 << KEY_DEV_BITS)
#define MAX_CLASSES    (1 << KEY_CLASS_BITS)

/* the class of opcodes that the filter leaves out; there are fewer real ones */
#define CLASS_IGNORED (MAX_CLASSES - 1)

/* size classes: no payload, up to 64 bytes, then one per octave; the last is open */
#define SIZE_CLASSES   9
#define SIZE_UNIT_BITS 6
#define SIZE_TABLE_LEN (1 + (0xffff >> SIZE_UNIT_BITS) + 1)

/* slot 0 is no kind of packet */
#define SLOT_NONE  0
#define SLOT_FIRST 1

/*
 * Packets that are grouped by owner have a cell for each kind and group: the slot of a key is then
 * the number of the kind, and a second table, of kinds and groups, has the slots of cells.
 */
#define MAX_KINDS 256

/* a key's cell; 0 until a packet of the kind is seen. Changes once, as one word. */
union slot_entry {
	struct {
		__u32 tag; /* index of the device + 1: two devices may meet in one key */
		__u32 slot;
	};
	__u64 word;
};

/* exact aggregates of one stage; the rest is in its buckets (packed_bucket.h); min starts high */
struct stage_sum {
	__u64 far; /* sum of the values beyond the table of buckets */
	__u32 min;
	__u32 max;
};

/* packets out of the ordinary; the others are counted by the buckets alone */
struct cell_head {
	__u64 switched; /* left out: the task was switched out meanwhile */
	__u64 slept;	/* of switched: in on-demand paging */
	__u64 loopback; /* never left the host */
};

#define DEFINE_PART(name, stages)                   \
	struct name {                               \
		struct cell_head head;              \
		struct stage_sum sum[stages];       \
		__u64 bucket[stages][LOGLIN_SLOTS]; \
	}

DEFINE_PART(tx_cell, RXE_TX_STAGES);
DEFINE_PART(xmit_cell, 1);
DEFINE_PART(arrival_part, RXE_RX_STAGES);
DEFINE_PART(done_part, RXE_DONE_STAGES);

/* one lookup for both: they come in one event */
struct rx_cell {
	struct arrival_part arrival;
	struct done_part done;
};

/* what calibration runs on, with room for a driver whose records have grown */
struct calibration_records {
	struct rxe_tx_stamps tx;
	char tx_room[128];
	struct rxe_rx_stamps rx;
	char rx_room[128];
};

#endif /* RXESTAT_H */
