// SPDX-License-Identifier: GPL-2.0-only
#include "packet_hold.h"

#include <stdlib.h>
#include <string.h>

#include "drop.h"

/* bytes of waiting packets; beyond that the oldest are written incomplete */
#define HOLD_BUDGET (32u << 20)

struct hold_entry {
	struct hold_entry *next;
	size_t size;
	__u32 drop; /* the network stack refused it */
	struct dump_record rec;
};

/* programs may write to the slot meanwhile: it counts only if it is ours before and after */
static bool read_late(const struct hold *h, struct packet *p)
{
	struct dump_late *slot = &h->table[p->rec->seq % DUMP_SLOTS];

	p->closed = __atomic_load_n(&slot->closed, __ATOMIC_ACQUIRE);
	p->late = *slot;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (p->late.seq == p->rec->seq &&
	    __atomic_load_n(&slot->seq, __ATOMIC_RELAXED) == p->rec->seq) {
		p->drop = p->late.drop;
		return true;
	}
	p->closed = false;
	return false;
}

/* from the beginning of its first stage */
static __u64 age_from(const struct dump_record *rec)
{
	return rec->id.begin;
}

/* Fill in p; true if there is nothing to wait for. */
static bool complete(struct hold *h, struct packet *p, __u32 refused, __u64 now, bool all)
{
	bool owned;

	p->stock = h->stock;
	if (p->rec->kind == DUMP_DROP) {
		p->drop = p->rec->reason;
		return true;
	}
	owned = read_late(h, p);
	if (refused)
		p->drop = refused;
	if (p->closed || p->drop == DROP_SEND)
		return true;
	if (p->rec->kind == DUMP_TX ? p->rec->id.flags & RXE_FLAG_LOOPBACK : h->stock)
		return true; /* no later stages */
	if (!owned) {
		h->evicted++;
		return true;
	}
	if (now - age_from(p->rec) >= h->patience_ns && now > age_from(p->rec)) {
		h->timed_out++;
		return true;
	}
	return all;
}

static void pop(struct hold *h)
{
	struct hold_entry *e = h->first;

	h->first = e->next;
	if (!h->first)
		h->last = NULL;
	h->bytes -= e->size;
	free(e);
}

static void emit(struct hold *h, struct packet *p)
{
	if (!h->enough)
		h->enough = !h->emit(h->context, p);
}

void hold_drain(struct hold *h, __u64 now_ns, bool all)
{
	while (h->first) {
		struct packet p = {.rec = &h->first->rec};
		bool ready = complete(h, &p, h->first->drop, now_ns, all);

		if (!ready && h->bytes <= HOLD_BUDGET)
			return;
		if (!ready)
			h->evicted++;
		emit(h, &p);
		pop(h);
	}
}

/* sending failed after the record was made: find the newest that matches */
static bool refuse(struct hold *h, const struct dump_record *drop)
{
	struct hold_entry *found = NULL;

	for (struct hold_entry *e = h->first; e; e = e->next) {
		const struct packet_id *id = &e->rec.id;

		if (e->rec.kind == DUMP_TX && id->dev == drop->id.dev && id->qpn == drop->id.qpn &&
		    id->psn == drop->id.psn && id->opcode == drop->id.opcode)
			found = e;
	}
	if (found)
		found->drop = drop->reason;
	return found;
}

static bool append(struct hold *h, const struct dump_record *rec)
{
	size_t size = sizeof(struct hold_entry) + rec->captured;
	struct hold_entry *e = malloc(size);

	if (!e)
		return false;
	e->next = NULL;
	e->size = size;
	e->drop = 0;
	memcpy(&e->rec, rec, sizeof(*rec) + rec->captured);
	if (h->last)
		h->last->next = e;
	else
		h->first = e;
	h->last = e;
	h->bytes += size;
	return true;
}

bool hold_push(struct hold *h, const struct dump_record *rec)
{
	struct packet p = {.rec = rec};

	/* without a match it is in the file already, with xmit_ns: the device refused, not the
	 * stack */
	if (rec->kind == DUMP_DROP && rec->reason == DROP_SEND) {
		refuse(h, rec);
		return !h->enough;
	}
	/* the usual case: it is complete, and no other packet waits */
	if (!h->first && complete(h, &p, 0, 0, false)) {
		emit(h, &p);
		return !h->enough;
	}
	return append(h, rec) && !h->enough;
}

void hold_free(struct hold *h)
{
	while (h->first)
		pop(h);
}

void hold_reset(struct hold *h)
{
	hold_free(h);
	h->timed_out = h->evicted = 0;
	h->enough = false;
}
