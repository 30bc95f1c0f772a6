/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A subset of Wireshark's display filters: fields of packet_fields.c; == != < <= > >= (eq ne lt le
 * gt ge) with numbers and addresses; && || ! (and or not), parentheses; a field alone: whether the
 * packet has it. As there, a comparison of a field with two values (ip.addr) holds if it holds for
 * one of them, != if it holds for both; and none holds for a field that the packet lacks.
 */
#ifndef RXEDUMP_DISPLAY_FILTER_H
#define RXEDUMP_DISPLAY_FILTER_H

#include "packet_fields.h"

#define FILTER_NODES 128

enum filter_operator {
	FILTER_AND,
	FILTER_OR,
	FILTER_NOT,
	FILTER_EXISTS,
	FILTER_EQ,
	FILTER_NE,
	FILTER_LT,
	FILTER_LE,
	FILTER_GT,
	FILTER_GE,
};

struct filter_node {
	enum filter_operator op;
	int left, right; /* nodes of AND, OR and NOT */
	const struct field *field;
	__u64 number;
	__u8 address[16];
	int prefix; /* bits of the address that count */
};

struct display_filter {
	int root; /* -1: everything passes */
	int nodes;
	struct filter_node node[FILTER_NODES];
	char error[128]; /* why it could not be read */
};

/* False: it is wrong, and error says why. */
bool display_filter_parse(struct display_filter *f, const char *text);
bool display_filter_passes(const struct display_filter *f, const struct frame_headers *h);

#endif /* RXEDUMP_DISPLAY_FILTER_H */
