// SPDX-License-Identifier: GPL-2.0-only
#include "message_follow.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bth.h"

#define PSN_MASK 0xffffff
/* beyond half of the numbers, a PSN is an earlier one */
#define PSN_HALF 0x800000

static bool read_number(const char *text, char end, __u32 most, __u32 *number, const char **rest)
{
	unsigned long value;
	char *stop;

	errno = 0;
	value = strtoul(text, &stop, 0);
	*rest = stop;
	*number = value;
	return isdigit((unsigned char)text[0]) && !errno && *stop == end && value <= most;
}

bool follow_parse(struct follow *f, const char *text)
{
	const char *rest;

	if (!read_number(text, ':', PSN_MASK, &f->qpn, &rest) || !f->qpn)
		return false;
	f->by_psn = rest[1] != '#';
	if (f->by_psn)
		return read_number(rest + 1, '\0', PSN_MASK, &f->psn, &rest);
	return read_number(rest + 2, '\0', 0x7fffffff, &f->number, &rest) && f->number;
}

static bool has_word(__u8 opcode, const char *word)
{
	const char *name = bth_name(opcode);

	return name && strstr(name, word);
}

static bool begins(__u8 opcode)
{
	return !has_word(opcode, "_MIDDLE") && !has_word(opcode, "_LAST");
}

static bool ends(__u8 opcode)
{
	return !has_word(opcode, "_MIDDLE") && !has_word(opcode, "_FIRST");
}

static __u32 after(__u32 psn, __u32 before)
{
	return (psn - before) & PSN_MASK;
}

/* count messages that this side sends, each once */
static bool is_wanted(struct follow *f, __u32 psn, bool sent)
{
	if (f->by_psn)
		return psn == f->psn;
	if (!sent || (f->seen && (psn == f->newest || after(psn, f->newest) >= PSN_HALF)))
		return false;
	f->newest = psn;
	return ++f->seen == f->number;
}

static bool find(struct follow *f, const struct packet_id *id, bool sent)
{
	if (bth_is_response(id->opcode) || !begins(id->opcode) || !is_wanted(f, id->psn, sent))
		return false;
	f->found = true;
	f->sent = sent;
	f->first = f->last = id->psn;
	f->complete = ends(id->opcode);
	f->is_read = bth_class_of(id->opcode) == BTH_CLASS_READ_REQUEST;
	return true;
}

static bool takes_request(struct follow *f, const struct packet_id *id)
{
	__u32 distance = after(id->psn, f->first);

	if (distance <= after(f->last, f->first))
		return true; /* again */
	/* a READ's answers have PSNs, too: it may be asked again from the middle */
	if (f->is_read)
		return f->read && distance <= after(f->read_last, f->first) &&
		       bth_class_of(id->opcode) == BTH_CLASS_READ_REQUEST;
	if (f->complete || begins(id->opcode) || distance >= PSN_HALF)
		return false;
	f->last = id->psn;
	f->complete = ends(id->opcode);
	return true;
}

static bool takes_response(struct follow *f, const struct packet_id *id)
{
	__u32 distance = after(id->psn, f->first);

	if (distance >= PSN_HALF)
		return false;
	if (f->is_read && f->read)
		return distance <= after(f->read_last, f->first);
	if (f->is_read) {
		f->read = ends(id->opcode);
		f->read_last = id->psn;
		return true;
	}
	if (distance <= after(f->last, f->first))
		return true;
	/* one acknowledgment may answer several messages: the first after the last packet counts */
	if (!f->complete || f->acknowledged)
		return false;
	f->acknowledged = true;
	return true;
}

bool follow_takes(struct follow *f, const struct packet *p)
{
	const struct packet_id *id = &p->rec->id;
	bool sent = packet_is_tx(p), response = bth_is_response(id->opcode);

	if (id->qpn != f->qpn)
		return false;
	if (!f->found)
		return find(f, id, sent);
	if (response)
		return sent != f->sent && takes_response(f, id);
	return sent == f->sent && takes_request(f, id);
}
