/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What rxedump's BPF programs and its reader agree on.
 *
 * A packet makes one record in the ring buffer, where its frame is complete: when it is sent, or
 * when it has arrived. What happens later (the path to the device, the work of responder or
 * completer, a drop) goes to a slot of a shared table, found by the record's number. So a packet
 * costs one reservation and one copy of its frame, and the reader merges.
 */
#ifndef RXEDUMP_H
#define RXEDUMP_H

#include <linux/types.h>

#include "rxe_record.h"
#include "xmit.h"

enum dump_kind {
	DUMP_TX,   /* rxe_tx_packet */
	DUMP_RX,   /* rxe_rx_packet */
	DUMP_DROP, /* rxe_drop of a packet without a record */
	DUMP_KINDS
};

/*
 * A record's room for the frame is one of these sizes, because a reservation in the ring buffer
 * must be constant: headers and little payload, then RoCE's path MTUs, then any IP packet.
 */
#define DUMP_ROOM_0 160
#define DUMP_ROOM_1 384
#define DUMP_ROOM_2 1664
#define DUMP_ROOM_3 4352
/* the largest frame: an IP packet of 64 KiB, with its link header */
#define DUMP_MAX_FRAME (0xffff + 14)
#define LINK_LEN       14

/* of rxe_tx_packet or rxe_rx_packet, whichever has more */
#define DUMP_STAGES \
	((int)RXE_TX_STAGES > (int)RXE_RX_STAGES ? (int)RXE_TX_STAGES : (int)RXE_RX_STAGES)

struct dump_record {
	__u32 seq;	/* never 0 */
	__u8 kind;	/* enum dump_kind */
	__u8 reason;	/* of a drop, lib/drop.h */
	__u16 protocol; /* EtherType */
	__u32 length;	/* of the frame before it was cut */
	__u32 captured; /* bytes of it that follow */
	struct packet_id id;
	__u32 stage[DUMP_STAGES]; /* of the event: rxe_tx_packet or rxe_rx_packet */
	__u8 has_link;		  /* the frame begins with its Ethernet header */
	__u8 unused[3];
	__u8 frame[];
};

/* what happened to a packet later; slots are reused in turn */
#define DUMP_SLOTS (1 << 16)
struct dump_late {
	__u32 seq;    /* whose it is */
	__u32 closed; /* it is complete; written last */
	__u32 drop;   /* the reason, 0: none */
	__u32 flags;  /* of rxe_rx_done */
	__u64 start;  /* of the first stage here */
	union {
		__u32 stage[RXE_DONE_STAGES]; /* rx */
		struct {
			__u32 xmit_ns;
			__u8 link[LINK_LEN]; /* as the device gets it */
			__u8 has_link;
		}; /* tx */
	};
};

/* a received packet that the driver still processes; each address has two places */
#define DONE_ENTRIES (1 << 16)
struct done_pending {
	__u64 skb; /* address, 0: empty */
	__u32 seq;
	__u32 psn;
};

/* packets without a record, because the ring buffer was full; by device, counted modulo 64 */
#define LOST_DEVICES 64
struct dump_lost {
	__u64 ring[DUMP_KINDS];
};

/* what calibration runs on */
struct calibration_records {
	struct packet_tx tx;
	struct packet_rx rx;
	struct packet_done done;
	__u8 frame[256];
};

#endif /* RXEDUMP_H */
