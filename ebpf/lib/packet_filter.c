// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "packet_filter.h"

#include <stdio.h>
#include <string.h>

#include "bth.h"

void packet_filter_init(struct packet_filter *f)
{
	memset(f, 0, sizeof(*f));
	f->tx = f->rx = true;
	memset(f->chosen, true, sizeof(f->chosen));
}

static int take_direction(struct packet_filter *f, const char *value)
{
	f->tx = !strcmp(value, "tx");
	f->rx = !strcmp(value, "rx");
	return f->tx || f->rx ? OPTION_TAKEN
			      : option_error("--direction takes tx or rx, not", value);
}

/* a second --opcode adds to the first */
static int take_opcodes(struct packet_filter *f, char *value)
{
	static char names[1024];
	char *save = NULL;

	if (!f->opcodes)
		memset(f->chosen, false, sizeof(f->chosen));
	snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
		 f->opcodes ? "," : "", value);
	f->opcodes = names;
	for (char *name = strtok_r(value, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		if (!bth_choose(name, f->chosen))
			return option_error("no such BTH opcode or class", name);
	}
	return OPTION_TAKEN;
}

int packet_filter_take(void *into, int letter, char *value)
{
	struct packet_filter *f = into;

	switch (letter) {
	case 'd':
		f->device = value;
		return OPTION_TAKEN;
	case 'q':
		return option_take_number(value, 0xffffff, &f->qpn,
					  "--qpn takes 1 to 16777215, not");
	case 'D':
		return take_direction(f, value);
	case 'O':
		return take_opcodes(f, value);
	default:
		return place_options_take(&f->places, letter, value);
	}
}

__u8 packet_filter_opcode(const struct packet_filter *f)
{
	__u8 opcode = 0;

	while (opcode < 255 && !f->chosen[opcode])
		opcode++;
	return opcode;
}
