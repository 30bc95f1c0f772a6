// SPDX-License-Identifier: GPL-2.0-only
#include "link_header.h"

#include <string.h>

#define ETHERTYPE_IPV4	  0x0800
#define ETHERTYPE_IPV6	  0x86dd
#define ETHERTYPE_ROCE_V1 0x8915
#define MAC_LEN		  6
#define IPV4_HEADER_LEN	  20
#define IPV6_HEADER_LEN	  40 /* and of the GRH, which has the same layout */

/* the network layer's destination; false: the frame is too short to tell */
static bool destination(const struct dump_record *rec, __u8 to[16])
{
	const __u8 *frame = rec->frame;

	memset(to, 0, 16);
	if (rec->has_link)
		return false;
	if (rec->protocol == ETHERTYPE_IPV4 && rec->captured >= IPV4_HEADER_LEN)
		memcpy(to, frame + 16, 4);
	else if ((rec->protocol == ETHERTYPE_IPV6 || rec->protocol == ETHERTYPE_ROCE_V1) &&
		 rec->captured >= IPV6_HEADER_LEN)
		memcpy(to, frame + 24, 16);
	else
		return false;
	return true;
}

static int find(const struct links *links, __u32 dev, const __u8 to[16])
{
	for (int i = 0; i < links->count; i++) {
		if (links->known[i].dev == dev && !memcmp(links->known[i].to, to, 16))
			return i;
	}
	return -1;
}

void link_learn(struct links *links, const struct dump_record *rec, const __u8 link[LINK_LEN])
{
	struct link_known *known;
	__u8 to[16];
	int i;

	if (!destination(rec, to))
		return;
	i = find(links, rec->id.dev, to);
	if (i < 0) {
		i = links->next;
		links->next = (links->next + 1) % MAX_LINKS;
		if (links->count < MAX_LINKS)
			links->count++;
	}
	known = &links->known[i];
	known->dev = rec->id.dev;
	memcpy(known->to, to, sizeof(known->to));
	memcpy(known->link, link, LINK_LEN);
}

void link_make(const struct links *links, const struct interface *interface,
	       const struct dump_record *rec, bool sent, __u8 link[LINK_LEN])
{
	bool loopback = rec->id.flags & RXE_FLAG_LOOPBACK;
	__u8 to[16];
	int i = sent && !loopback && destination(rec, to) ? find(links, rec->id.dev, to) : -1;

	if (i >= 0) {
		memcpy(link, links->known[i].link, LINK_LEN);
		return;
	}
	memset(link, 0, LINK_LEN);
	if (interface->has_mac && (!sent || loopback))
		memcpy(link, interface->mac, MAC_LEN);
	if (interface->has_mac && (sent || loopback))
		memcpy(link + MAC_LEN, interface->mac, MAC_LEN);
	link[12] = rec->protocol >> 8;
	link[13] = rec->protocol;
}

void link_ipv4_checksum(__u8 *frame, size_t captured)
{
	size_t length = captured ? (frame[0] & 15) * 4 : 0;
	__u32 sum = 0;

	if (length < IPV4_HEADER_LEN || captured < length || frame[0] >> 4 != 4)
		return;
	frame[10] = frame[11] = 0;
	for (size_t i = 0; i < length; i += 2)
		sum += frame[i] << 8 | frame[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	sum = ~sum;
	frame[10] = sum >> 8;
	frame[11] = sum;
}
