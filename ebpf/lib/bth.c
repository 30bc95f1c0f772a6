// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bth.h"

#include <stdio.h>
#include <strings.h>

#include "opcodes.h"

/* lengths of headers, bytes (chapter 9); the names are those of the table, in capitals */
enum {
	LEN_BTH = 12,
	LEN_RDETH = 4,
	LEN_DETH = 8,
	LEN_XRCETH = 4,
	LEN_RETH = 16,
	LEN_AETH = 4,
	LEN_ATOMICETH = 28,
	LEN_ATOMICACKETH = 8,
	LEN_IMMDT = 4,
	LEN_IETH = 4,
	LEN_FETH = 4,
	LEN_CNP = 16,
	LEN_ICRC = 4,
};

static const struct opcode {
	const char *name;
	__u8 class; /* enum bth_class */
	__u8 extended;
} opcodes[256] = {
#define OPCODE(code, opcode_name, class_id, length) \
	[code] = {opcode_name, BTH_CLASS_##class_id, length},
	OPCODES(OPCODE)};

static const struct class {
	const char *name;
	bool response;
} classes[BTH_CLASSES] = {[BTH_CLASS_OTHER] = {"OTHER", false},
#define CLASS(id, class_name, is_response) [BTH_CLASS_##id] = {class_name, is_response},
			  OPCODE_CLASSES(CLASS)};

static const char *const service_names[8] = {
	[BTH_RC] = "RC", [BTH_UC] = "UC",   [BTH_RD] = "RD",
	[BTH_UD] = "UD", [BTH_CNP] = "CNP", [BTH_XRC] = "XRC",
};

const char *bth_name(__u8 opcode)
{
	return opcodes[opcode].name;
}

enum bth_class bth_class_of(__u8 opcode)
{
	return opcodes[opcode].class;
}

bool bth_is_response(__u8 opcode)
{
	return classes[bth_class_of(opcode)].response;
}

__u8 bth_overhead(__u8 opcode)
{
	return LEN_BTH + opcodes[opcode].extended + LEN_ICRC;
}

const char *bth_class_name(unsigned int class)
{
	return classes[class < BTH_CLASSES ? class : BTH_CLASS_OTHER].name;
}

const char *bth_service_name(unsigned int service)
{
	return service < 8 && service_names[service] ? service_names[service] : "-";
}

bool bth_choose(const char *name, bool chosen[256])
{
	bool found = false;

	for (unsigned int op = 0; op < 256; op++) {
		const char *class = bth_class_name(bth_class_of(op)), *opcode = bth_name(op);
		char with_service[64];

		snprintf(with_service, sizeof(with_service), "%s_%s", bth_service_name(op >> 5),
			 class);
		if (!strcasecmp(name, class) || !strcasecmp(name, with_service) ||
		    (opcode && !strcasecmp(name, opcode)))
			found = chosen[op] = true;
	}
	return found;
}
