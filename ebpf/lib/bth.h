/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Base Transport Header opcodes (InfiniBand Architecture Specification, volume 1, chapter 9.2).
 * Names are the specification's, spelled as the kernel's include/rdma/ib_pack.h does; the table is
 * tables/opcodes.csv.
 */
#ifndef ROCELAB_BTH_H
#define ROCELAB_BTH_H

#include <linux/types.h>
#include <stdbool.h>

#include "opcode_classes.h"

/* the upper three bits of an opcode */
enum bth_service {
	BTH_RC = 0,
	BTH_UC = 1,
	BTH_RD = 2,
	BTH_UD = 3,
	BTH_CNP = 4,
	BTH_XRC = 5,
};

#define BTH_CLASS_ENUM(id, ...) BTH_CLASS_##id,
/* the purpose of a packet, independent of its service and its place in the message */
enum bth_class {
	BTH_CLASS_OTHER, /* reserved, or manufacturer-specific */
	OPCODE_CLASSES(BTH_CLASS_ENUM) BTH_CLASSES
};

/* "RC_SEND_ONLY"; NULL if the specification does not name it */
const char *bth_name(__u8 opcode);
enum bth_class bth_class_of(__u8 opcode);
/* whether such a packet answers another */
bool bth_is_response(__u8 opcode);
/* bytes of a packet that are not payload or pad: BTH, extended headers, ICRC */
__u8 bth_overhead(__u8 opcode);
/* "RDMA_WRITE"; "OTHER" beyond the enum */
const char *bth_class_name(unsigned int class);
/* "RC"; "-" for services that the specification does not define */
const char *bth_service_name(unsigned int service);
/*
 * Mark in chosen[] the opcodes that a name means: an opcode ("RC_SEND_ONLY"), a class
 * ("SEND"), or both with a service ("RC_SEND"). Case does not matter. False: no such name.
 */
bool bth_choose(const char *name, bool chosen[256]);

#endif /* ROCELAB_BTH_H */
