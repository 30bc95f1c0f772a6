// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "count.h"

#include <string.h>

#include "bth.h"
#include "json.h"

#define ETHERTYPE_IPV4	  0x0800
#define ETHERTYPE_IPV6	  0x86dd
#define ETHERTYPE_VLAN	  0x8100
#define ETHERTYPE_QINQ	  0x88a8
#define ETHERTYPE_ROCE_V1 0x8915
#define PROTOCOL_TCP	  6
#define PROTOCOL_UDP	  17
#define ROCE_V2_PORT	  4791
#define TCP_SYN		  0x02

#define ETHERNET_BYTES	  14
#define IPV6_BYTES	  40
#define GRH_BYTES	  40
#define CNP		  0x81 /* no connection's, and without a message */

/* both frames that begin an iWARP connection (RFC 5044, 7.1.1) */
static const char mpa[] = "MPA ID Re";

#define MPA_BYTES (sizeof(mpa) - 1)

/* a frame that is read; `cut`: a byte was wanted that is not there */
struct reader {
	const uint8_t *frame;
	size_t captured;
	uint32_t length;
	bool cut;
};

static unsigned int byte_at(struct reader *in, size_t at)
{
	if (at < in->captured)
		return in->frame[at];
	in->cut = true;
	return 0;
}

static unsigned int word_at(struct reader *in, size_t at)
{
	return byte_at(in, at) << 8 | byte_at(in, at + 1);
}

/* requests for data and answers without data carry and begin no message */
static bool has_data(__u8 opcode)
{
	switch (bth_class_of(opcode)) {
	case BTH_CLASS_SEND:
	case BTH_CLASS_WRITE:
	case BTH_CLASS_READ_RESPONSE:
	case BTH_CLASS_ATOMIC:
	case BTH_CLASS_ATOMIC_WRITE:
		return true;
	default:
		return false;
	}
}

/* `payload`: bytes from the BTH to the ICRC */
static void count_roce(struct counts *counts, struct reader *in, size_t offset, long payload)
{
	__u8 opcode = byte_at(in, offset);
	unsigned int service = opcode >> 5, pad;

	if (in->cut || opcode == CNP)
		return;
	pad = byte_at(in, offset + 1) >> 4 & 3;
	if (in->cut)
		return;
	if (!bth_name(opcode) || (service != BTH_RC && service != BTH_UC && service != BTH_UD)) {
		counts->undecoded++;
		return;
	}
	if (!has_data(opcode))
		return;
	payload -= bth_overhead(opcode) + pad;
	counts->roce_data++;
	counts->roce_data_bytes += in->length;
	counts->roce_payload_bytes += payload > 0 ? payload : 0;
}

/* `addresses`: where both are, `size` bytes each */
static struct connection connection_of(const struct reader *in, size_t addresses, size_t size,
				       size_t ports)
{
	struct connection found = {.length = 2 * (size + 2)};
	uint8_t one[MAX_KEY / 2], other[MAX_KEY / 2];
	bool swap;

	memcpy(one, in->frame + addresses, size);
	memcpy(one + size, in->frame + ports, 2);
	memcpy(other, in->frame + addresses + size, size);
	memcpy(other + size, in->frame + ports + 2, 2);
	swap = memcmp(one, other, size + 2) > 0;
	memcpy(found.ends, swap ? other : one, size + 2);
	memcpy(found.ends + size + 2, swap ? one : other, size + 2);
	return found;
}

static bool is_iwarp(struct counts *counts, struct reader *in, size_t addresses, size_t size,
		     size_t offset, long carried)
{
	size_t body = offset + (byte_at(in, offset + 12) >> 4) * 4, i;
	bool begins = carried > (long)MPA_BYTES && body + MPA_BYTES <= in->captured &&
		      !memcmp(in->frame + body, mpa, MPA_BYTES);
	struct connection this;
	unsigned int flags;

	if (!begins && !counts->connections)
		return false;
	flags = byte_at(in, offset + 13);
	if (in->cut || addresses + 2 * size > in->captured)
		return false;
	this = connection_of(in, addresses, size, offset);
	for (i = 0; i < counts->connections; i++)
		if (counts->mpa[i].length == this.length &&
		    !memcmp(counts->mpa[i].ends, this.ends, this.length))
			break;
	if (flags & TCP_SYN) {
		if (i < counts->connections)
			counts->mpa[i] = counts->mpa[--counts->connections];
		return false;
	}
	if (i == counts->connections && begins && i < MAX_CONNECTIONS)
		counts->mpa[counts->connections++] = this;
	return i < counts->connections;
}

static struct tcp_count *tcp_between(struct counts *counts, unsigned int one, unsigned int other,
				     bool iwarp)
{
	unsigned int low = one < other ? one : other, high = one < other ? other : one;
	struct tcp_count *last = &counts->tcp[MAX_PORTS - 1];
	size_t i;

	for (i = 0; i < counts->ports; i++) {
		struct tcp_count *tcp = &counts->tcp[i];

		if (tcp->low == low && tcp->high == high && tcp->iwarp == iwarp)
			return tcp;
	}
	if (counts->ports < MAX_PORTS - 1) {
		counts->tcp[counts->ports] =
			(struct tcp_count){.low = low, .high = high, .iwarp = iwarp};
		return &counts->tcp[counts->ports++];
	}
	counts->ports = MAX_PORTS;
	return last;
}

static void count_tcp(struct counts *counts, struct reader *in, size_t addresses, size_t size,
		      size_t offset, long payload, bool kept)
{
	long carried = payload - (long)(byte_at(in, offset + 12) >> 4) * 4;
	unsigned int source = word_at(in, offset), destination = word_at(in, offset + 2);
	struct tcp_count *tcp;
	bool iwarp;

	if (in->cut)
		return;
	iwarp = is_iwarp(counts, in, addresses, size, offset, carried);
	if (in->cut || kept)
		return;
	tcp = tcp_between(counts, source, destination, iwarp);
	tcp->frames++;
	if (carried > 0) {
		tcp->data++;
		tcp->data_bytes += in->length;
		tcp->payload_bytes += carried;
	}
}

static void count_ip(struct counts *counts, struct reader *in, unsigned int protocol,
		     size_t addresses, size_t size, size_t offset, long payload, bool kept)
{
	bool roce = false;

	if (protocol == PROTOCOL_TCP) {
		count_tcp(counts, in, addresses, size, offset, payload, kept);
		return;
	}
	if (kept)
		return;
	if (protocol == PROTOCOL_UDP)
		roce = word_at(in, offset + 2) == ROCE_V2_PORT;
	if (in->cut)
		return;
	if (roce) {
		counts->roce_v2++;
		count_roce(counts, in, offset + 8, payload - 8);
	} else {
		counts->other++;
	}
}

static void count_one(struct counts *counts, struct reader *in, bool kept)
{
	unsigned int type = word_at(in, 12), header, fragment, protocol;
	size_t offset = ETHERNET_BYTES;
	long payload;

	while (!in->cut && (type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ)) {
		type = word_at(in, offset + 2);
		offset += 4;
	}
	if (in->cut)
		return;
	if (type == ETHERTYPE_ROCE_V1 && !kept) {
		payload = word_at(in, offset + 4);
		if (in->cut)
			return;
		counts->roce_v1++;
		count_roce(counts, in, offset + GRH_BYTES, payload);
		return;
	}
	if (type == ETHERTYPE_IPV4) {
		/* a later fragment has no transport header */
		fragment = byte_at(in, offset + 6) & 0x1f;
		if (!fragment)
			fragment = byte_at(in, offset + 7);
		if (!in->cut && !fragment) {
			payload = word_at(in, offset + 2);
			header = (byte_at(in, offset) & 15) * 4;
			protocol = byte_at(in, offset + 9);
			if (!in->cut)
				count_ip(counts, in, protocol, offset + 12, 4, offset + header,
					 payload - header, kept);
			return;
		}
	} else if (type == ETHERTYPE_IPV6) {
		payload = word_at(in, offset + 4);
		protocol = byte_at(in, offset + 6);
		if (!in->cut)
			count_ip(counts, in, protocol, offset + 8, 16, offset + IPV6_BYTES, payload,
				 kept);
		return;
	}
	if (!in->cut && !kept)
		counts->other++;
}

void count_frame(struct counts *counts, const uint8_t *frame, size_t captured, uint32_t length,
		 bool kept)
{
	struct reader in = {.frame = frame, .captured = captured, .length = length};

	count_one(counts, &in, kept);
	if (kept)
		return;
	counts->frames++;
	counts->bytes += length;
	if (in.cut)
		counts->undecoded++;
}

static void print_tcp(struct json *j, const struct tcp_count *tcp)
{
	json_open_object(j, NULL);
	json_open_array(j, "ports");
	json_u64(j, NULL, tcp->low);
	json_u64(j, NULL, tcp->high);
	json_close_array(j);
	json_bool(j, "iwarp", tcp->iwarp);
	json_u64(j, "frames", tcp->frames);
	json_u64(j, "data", tcp->data);
	json_u64(j, "data_bytes", tcp->data_bytes);
	json_u64(j, "payload_bytes", tcp->payload_bytes);
	json_close_object(j);
}

void count_print(const struct counts *counts, FILE *out)
{
	struct json j = {.out = out};

	json_open_object(&j, NULL);
	json_string(&j, "schema", "rocelab.linktap/1");
	json_u64(&j, "frames", counts->frames);
	json_u64(&j, "bytes", counts->bytes);
	json_u64(&j, "roce_v1", counts->roce_v1);
	json_u64(&j, "roce_v2", counts->roce_v2);
	json_u64(&j, "roce_data", counts->roce_data);
	json_u64(&j, "roce_data_bytes", counts->roce_data_bytes);
	json_u64(&j, "roce_payload_bytes", counts->roce_payload_bytes);
	json_u64(&j, "other", counts->other);
	json_u64(&j, "undecoded", counts->undecoded);
	json_open_array(&j, "tcp");
	for (size_t i = 0; i < counts->ports; i++)
		print_tcp(&j, &counts->tcp[i]);
	json_close_array(&j);
	json_close_object(&j);
	json_end(&j);
}
