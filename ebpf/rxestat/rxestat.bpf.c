// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stage histograms of rdma_rxe's packets: from the events of the instrumented driver, or, on the
 * stock one, from its functions (stock.bpf.h).
 *
 * Some of this runs twice per packet, so it is written for few instructions: tables instead of
 * branches, filters that the verifier removes when unused, one per-CPU array lookup per event.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "rxestat.h"
#include "calibrate.bpf.h"
#include "cells.bpf.h"
#include "work_cells.bpf.h"
#include "xmit.bpf.h"
#include "losses.bpf.h"

char LICENSE[] SEC("license") = "GPL";

CELLS(tx);
CELLS(rx);
CELLS(xmit); /* numbered as tx: a packet's xmit goes to the slot of its other stages */
SLOTS(tx);
SLOTS(rx); /* of done, too: one event has both */

/* follow packets to the device */
const volatile bool with_xmit = false;

/*
 * Stages whose 0 is no value: not every packet passes them (a response has no work request, a
 * middle packet no cqe), or the stock driver, which shares the cells, does not show them.
 */
#define TX_OPTIONAL_BIT(id, name, capsule, passed, stock) \
	| (RXE_PASSED_##passed != RXE_PASSED_ALL || !(stock)) << RXE_TX_##id
#define RX_OPTIONAL_BIT(id, name, capsule, passed, stock) \
	| (RXE_PASSED_##passed != RXE_PASSED_ALL || !(stock)) << RXE_RX_##id
#define DONE_OPTIONAL_BIT(id, name, capsule, passed, stock) \
	| (RXE_PASSED_##passed != RXE_PASSED_ALL) << RXE_DONE_##id
#define TX_OPTIONAL   (0 TX_PACKET_STAGES(TX_OPTIONAL_BIT))
#define RX_OPTIONAL   (0 RX_PACKET_STAGES(RX_OPTIONAL_BIT))
#define DONE_OPTIONAL (0 RX_DONE_STAGES(DONE_OPTIONAL_BIT))

static __always_inline __u32 on_tx(const struct rxe_tx_stamps *r)
{
	__u32 slot = SLOT_OF(r->id, tx);
	const __u64 *end = r->end;
	__u64 from = r->id.begin;
	struct tx_cell *cell;
	__u8 flags;

	if (slot == SLOT_NONE)
		return SLOT_NONE;
	cell = cell_of(&tx_cells, slot);
	flags = r->id.flags;
	if (!cell || skip_switched(&cell->head, flags & RXE_FLAG_SWITCHED, flags & RXE_FLAG_SLEPT))
		return SLOT_NONE;
	/* one register for the array, and offsets in the loads */
	asm volatile("" : "+r"(end));
#define TIME(i)                         \
	({                              \
		__u64 end_ = end[i];    \
		__u64 t_ = end_ - from; \
		from = end_;            \
		t_;                     \
	})
	ACCOUNT_STAMPS(cell, TIME, RXE_TX_STAGES, TX_OPTIONAL);
#undef TIME
	if (flags & RXE_FLAG_LOOPBACK) {
		cell->head.loopback++;
		return SLOT_NONE;
	}
	return slot; /* of a packet that leaves this host */
}

static __always_inline void on_arrival(const struct rxe_rx_stamps *r, struct arrival_part *cell,
				       __u8 flags)
{
	const __u32 *arrival = r->arrival;

	/* nothing sleeps on arrival */
	if (skip_switched(&cell->head, flags & RXE_FLAG_RX_SWITCHED, false))
		return;
	asm volatile("" : "+r"(arrival));
#define TIME(i) arrival[i]
	ACCOUNT_STAMPS(cell, TIME, RXE_RX_STAGES, RX_OPTIONAL);
#undef TIME
	if (flags & RXE_FLAG_LOOPBACK)
		cell->head.loopback++;
}

static __always_inline void on_done(const struct rxe_rx_stamps *r, struct done_part *cell,
				    __u8 flags)
{
	const __u64 *stage = r->stage;

	if (skip_switched(&cell->head, flags & RXE_FLAG_SWITCHED, flags & RXE_FLAG_SLEPT))
		return;
	asm volatile("" : "+r"(stage));
#define TIME(i) stage[i]
	ACCOUNT_STAMPS(cell, TIME, RXE_DONE_STAGES, DONE_OPTIONAL);
#undef TIME
	if (flags & RXE_FLAG_LOOPBACK)
		cell->head.loopback++;
}

static __always_inline void on_rx(const struct rxe_rx_stamps *r)
{
	__u32 slot = SLOT_OF(r->id, rx);
	__u8 flags = r->id.flags;
	struct rx_cell *cell;

	if (slot == SLOT_NONE)
		return;
	cell = cell_of(&rx_cells, slot);
	if (!cell)
		return;
	if (flags & RXE_FLAG_ARRIVED)
		on_arrival(r, &cell->arrival, flags);
	if (flags & RXE_FLAG_DONE)
		on_done(r, &cell->done, flags);
}

static __always_inline void on_xmit(__u32 slot, __u64 ns)
{
	struct xmit_cell *cell = cell_of(&xmit_cells, slot);

	if (cell)
		account(cell, &cell->sum[0], __builtin_offsetof(struct xmit_cell, bucket),
			bucket_table, ns >> 32 ? ~0u : ns);
}

/* 6.12 and later: to the verifier, arguments of a module's tracepoint may be NULL */

SEC("tp_btf/rxe_tx_stamps")
int BPF_PROG(rxe_tx_stamps, const struct rxe_tx_stamps *r, const struct sk_buff *skb)
{
	struct xmit_pending *pending;
	__u32 slot;

	if (!r)
		return 0;
	if (!with_xmit) {
		on_tx(r);
		return 0;
	}
	/* a packet that waited under this address will never arrive */
	pending = xmit_entry(skb);
	pending->skb = 0;
	slot = on_tx(r);
	if (slot != SLOT_NONE)
		xmit_hold(pending, slot, r->id.dqpn, r->id.psn, (__u64)skb);
	return 0;
}

SEC("tp_btf/rxe_rx_stamps")
int BPF_PROG(rxe_rx_stamps, const struct rxe_rx_stamps *r)
{
	if (r)
		on_rx(r);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(net_dev_start_xmit, const struct sk_buff *skb, const struct net_device *dev)
{
	struct xmit_pending *pending = xmit_entry(skb);
	__u64 now;

	if (pending->skb != (__u64)skb || xmit_is_on_top(dev))
		return 0;
	now = bpf_ktime_get_ns();
	pending->skb = 0;
	if (xmit_is_ours(pending, skb))
		on_xmit(pending->slot, now - pending->start);
	return 0;
}

#include "stock.bpf.h"

/* name: of the function; kind: of cell; part: of the cell, for a packet of this kind */
#define DEFINE_ON_STOCK(name, kind, record, part, stages, optional) \
	static __always_inline __u32 name(const struct record *r)   \
	{                                                           \
		__u32 slot = SLOT_OF(r->id, kind);                  \
		struct kind##_cell *cell;                           \
                                                                    \
		if (slot == SLOT_NONE)                              \
			return SLOT_NONE;                           \
		cell = cell_of(&kind##_cells, slot);                \
		if (!cell)                                          \
			return SLOT_NONE;                           \
		ACCOUNT_STAGES(part, r, stages, optional);          \
		if (r->id.flags & RXE_FLAG_LOOPBACK) {              \
			(part)->head.loopback++;                    \
			return SLOT_NONE;                           \
		}                                                   \
		return slot;                                        \
	}

DEFINE_ON_STOCK(on_stock_tx, tx, packet_tx, cell, RXE_TX_STAGES, TX_OPTIONAL)
DEFINE_ON_STOCK(on_stock_rx, rx, packet_rx, &cell->arrival, RXE_RX_STAGES, RX_OPTIONAL)

static __always_inline __u32 stock_sent(const struct packet_tx *r, const struct sk_buff *skb)
{
	__u32 slot = on_stock_tx(r);

	return with_xmit ? slot : SLOT_NONE;
}

static __always_inline void stock_received(const struct packet_rx *r, const struct sk_buff *skb)
{
	on_stock_rx(r);
}

static __always_inline void stock_lost(void)
{
	__sync_fetch_and_add(&lost, 1);
}

/*
 * Calibration, by BPF_PROG_TEST_RUN before anything is attached: the same code on records of our
 * own. What it leaves out is the way from the tracepoint to the program.
 */
struct calibration_records calibrate_record = {};

SEC("socket")
int calibrate_tx(struct __sk_buff *ctx)
{
	const struct rxe_tx_stamps *r = &calibrate_record.tx;
	__u32 slot = on_tx(r);

	if (with_xmit && slot != SLOT_NONE)
		xmit_hold(&xmit_table[0], slot, r->id.dqpn, r->id.psn, 0);
	return 0;
}

SEC("socket")
int calibrate_xmit(struct __sk_buff *ctx)
{
	struct xmit_pending *pending = &xmit_table[0];

	if (pending->skb)
		return 0;
	on_xmit(SLOT_FIRST, bpf_ktime_get_ns() & 0x3ff);
	return 0;
}

SEC("socket")
int calibrate_rx(struct __sk_buff *ctx)
{
	on_rx(&calibrate_record.rx);
	return 0;
}
