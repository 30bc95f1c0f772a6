// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sends mutated frames, the same for the same seed and templates.
 *
 *   frame_fuzz NETDEV SEED COUNT [NUMBERS] <TEMPLATES
 *
 * TEMPLATES: Ethernet frames in hexadecimal, one per line, RoCE v1 or v2, whose ICRC and checksums
 * are computed here. The Ethernet type is never mutated. Most frames get a correct ICRC (and for v2
 * correct IPv4 and UDP checksums) after the mutation, so that they pass these checks. Prints the
 * number of frames sent.
 *
 * NUMBERS is verbs_target's file of numbers of queue pairs that come and go. A template for the
 * queue pair 0x800000 + N goes to the one whose number is there at place N now.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEMPLATES 256
#define LONGEST	  4000 /* bytes of a frame */
#define ETH	  14
#define ICRC	  4
#define PLACE	  0x800000
#define PLACES	  64

struct frame {
	int length;
	unsigned char data[LONGEST];
};

static struct frame templates[TEMPLATES];
static uint64_t state;
static uint32_t crc_table[256];
static const volatile uint32_t *numbers;

/* splitmix64 */
static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static unsigned int below(unsigned int n)
{
	return draw() % n;
}

static uint32_t crc32_more(uint32_t crc, const unsigned char *data, int length)
{
	while (length-- > 0)
		crc = crc >> 8 ^ crc_table[(crc ^ *data++) & 0xff];
	return crc;
}

static uint32_t sum_words(uint32_t sum, const unsigned char *data, int length)
{
	for (; length > 1; data += 2, length -= 2)
		sum += data[0] << 8 | data[1];
	if (length)
		sum += data[0] << 8;
	return sum;
}

static void put_checksum(unsigned char *at, uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	sum = ~sum & 0xffff;
	if (!sum)
		sum = 0xffff;
	at[0] = sum >> 8;
	at[1] = sum;
}

/* offset of the BTH in an unmutated frame, or 0 */
static int transport_of(const struct frame *f)
{
	if (f->data[12] == 0x89 && f->data[13] == 0x15)
		return ETH + 40;
	return ETH + (f->data[12] == 0x08 ? 20 : 40) + 8;
}

/* sets the last four bytes to the ICRC of the bytes before them */
static void put_icrc(struct frame *f)
{
	static const unsigned char lrh[8] = {255, 255, 255, 255, 255, 255, 255, 255};
	unsigned char h[40 + 8 + 12];
	int bth = transport_of(f), start = bth - ETH, end = f->length - ICRC;
	uint32_t crc = 0xffffffff;

	if (end < bth + 12)
		return;
	memcpy(h, f->data + ETH, start + 12);
	if (f->data[12] == 0x08) {
		h[1] = h[8] = h[10] = h[11] = 0xff;
	} else {
		h[0] |= 0x0f;
		h[1] = h[2] = h[3] = h[7] = 0xff;
	}
	if (f->data[12] != 0x89)
		h[start - 2] = h[start - 1] = 0xff;
	h[start + 4] = 0xff;
	crc = crc32_more(crc, lrh, sizeof(lrh));
	crc = crc32_more(crc, h, start + 12);
	crc = ~crc32_more(crc, f->data + bth + 12, end - bth - 12);
	for (int i = 0; i < ICRC; i++)
		f->data[end + i] = crc >> 8 * i;
}

static void put_checksums(struct frame *f)
{
	unsigned char *ip = f->data + ETH;

	if (f->data[12] == 0x08 && f->length >= ETH + 20) {
		ip[10] = ip[11] = 0;
		put_checksum(ip + 10, sum_words(0, ip, 20));
	} else if (f->data[12] == 0x86 && f->length >= ETH + 48) {
		int length = f->length - ETH - 40;

		ip[46] = ip[47] = 0;
		put_checksum(ip + 46,
			     sum_words(sum_words(length + 17, ip + 8, 32), ip + 40, length));
	}
}

/* corrects the length fields after the frame changed its length */
static void put_lengths(struct frame *f)
{
	unsigned char *ip = f->data + ETH;
	int all = f->length - ETH;

	if (f->data[12] == 0x08) {
		ip[2] = all >> 8, ip[3] = all;
		ip[24] = (all - 20) >> 8, ip[25] = all - 20;
	} else {
		ip[4] = (all - 40) >> 8, ip[5] = all - 40;
		if (f->data[12] == 0x86)
			ip[44] = (all - 40) >> 8, ip[45] = all - 40;
	}
}

static void mutate(struct frame *f)
{
	static const unsigned char interesting[] = {0, 1, 0x7f, 0x80, 0xff, 0x40, 0x10, 0xfe};
	int bth = transport_of(f), length = f->length, at = ETH + below(length - ETH);

	switch (below(12)) {
	case 0: /* one bit */
		f->data[at] ^= 1 << below(8);
		break;
	case 1:
		f->data[at] = draw();
		break;
	case 2:
		f->data[at] = interesting[below(sizeof(interesting))];
		break;
	case 3: /* an opcode of any service */
		f->data[bth] = draw();
		break;
	case 4: /* pad count, migration, version */
		f->data[bth + 1] = draw();
		break;
	case 5: /* one of the network's lengths */
		at = f->data[12] == 0x89 || (f->data[12] == 0x86 && below(2)) ? ETH + 4 : bth - 4;
		f->data[at] = below(4) ? 0 : draw();
		f->data[at + 1] = below(4) ? draw() : 0;
		break;
	case 6: /* shorter */
		f->length = ETH + below(length - ETH) + 1;
		break;
	case 7: /* longer, lengths and all or as padding */
		f->length = length + 1 + below(LONGEST - length < 200 ? LONGEST - length : 200);
		for (int i = length; i < f->length; i++)
			f->data[i] = draw();
		break;
	case 8: /* a hole */
		for (int i = at; i < length && i < at + 16; i++)
			f->data[i] = 0;
		break;
	case 9: /* extended headers */
		for (int i = bth + 12; i < length && i < bth + 40; i++)
			if (!below(4))
				f->data[i] = draw();
		break;
	case 10: /* to somebody else, or to all */
		for (int i = 0; i < 6; i++)
			f->data[i] = below(2) ? 0xff : draw();
		break;
	default: /* network header */
		f->data[ETH + below(bth - ETH)] = draw();
	}
}

static void put_number(unsigned char *qpn)
{
	uint32_t place = qpn[0] << 16 | qpn[1] << 8 | qpn[2];

	if (place >= PLACE && place < PLACE + PLACES) {
		uint32_t number = numbers[place - PLACE];

		qpn[0] = number >> 16, qpn[1] = number >> 8, qpn[2] = number;
	}
}

static int make(struct frame *f, int n)
{
	*f = templates[below(n)];
	if (numbers)
		put_number(f->data + transport_of(f) + 5);
	/* a queue pair that is new expects 0 */
	f->data[transport_of(f) + 11] = below(4) ? below(4) : draw();
	for (int i = below(4); i > 0; i--)
		mutate(f);
	if (f->length < transport_of(f) + 12)
		return f->length;
	if (below(2))
		put_lengths(f);
	if (below(8))
		put_icrc(f);
	if (below(8))
		put_checksums(f);
	return f->length;
}

int main(int argc, char **argv)
{
	char line[2 * LONGEST + 2];
	int n = 0;
	long sent = 0;
	struct frame f;

	if (argc != 4 && argc != 5)
		return 2;
	if (argc == 5) {
		int file = open(argv[4], O_RDONLY);

		numbers = mmap(NULL, PLACES * sizeof(*numbers), PROT_READ, MAP_SHARED, file, 0);
		if (numbers == MAP_FAILED) {
			fprintf(stderr, "frame_fuzz: %s: %s\n", argv[4], strerror(errno));
			return 1;
		}
	}
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
		crc_table[i] = c;
	}
	while (n < TEMPLATES && fgets(line, sizeof(line), stdin)) {
		struct frame *t = &templates[n++];

		for (char *p = line;
		     t->length < LONGEST && sscanf(p, "%2hhx", t->data + t->length) == 1; p += 2)
			t->length++;
		put_icrc(t);
		put_checksums(t);
	}

	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(argv[1])};

	if (!n || fd < 0 || !to.sll_ifindex || bind(fd, (struct sockaddr *)&to, sizeof(to))) {
		fprintf(stderr, "frame_fuzz: no templates, no rights or no interface: %s\n",
			strerror(errno));
		return 1;
	}
	state = strtoull(argv[2], NULL, 0);
	for (long i = atol(argv[3]); i > 0; i--) {
		make(&f, n);
		while (send(fd, f.data, f.length, 0) < 0) {
			if (errno != ENOBUFS) {
				fprintf(stderr, "frame_fuzz: %s\n", strerror(errno));
				return 1;
			}
			usleep(1000);
		}
		sent++;
	}
	printf("%ld\n", sent);
	return 0;
}
