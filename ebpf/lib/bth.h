/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Base Transport Header opcodes (InfiniBand Architecture Specification, volume 1, chapter 9.2).
 * Names are the specification's, spelled as the kernel's include/rdma/ib_pack.h does.
 */
#ifndef ROCELAB_BTH_H
#define ROCELAB_BTH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* the upper three bits of an opcode */
enum bth_service {
	BTH_RC = 0,
	BTH_UC = 1,
	BTH_RD = 2,
	BTH_UD = 3,
	BTH_CNP = 4,
	BTH_XRC = 5,
};

/* what a packet is for, whatever its service and its place in the message: the opcode class */
enum bth_class {
	BTH_OTHER, /* reserved, or the manufacturer's own */
	BTH_SEND,
	BTH_RDMA_WRITE,
	BTH_RDMA_READ_REQUEST,
	BTH_RDMA_READ_RESPONSE,
	BTH_ACKNOWLEDGE,
	BTH_ATOMIC_ACKNOWLEDGE,
	BTH_ATOMIC,
	BTH_RESYNC,
	BTH_FLUSH,
	BTH_ATOMIC_WRITE,
	BTH_CONGESTION,
	BTH_CLASSES
};

struct bth_opcode {
	__u8 opcode;
	__u8 class; /* enum bth_class */
	const char *name;
};

extern const struct bth_opcode bth_opcodes[];
extern const size_t bth_opcodes_len;

/* "RC_SEND_ONLY"; NULL for what the specification does not name */
const char *bth_name(__u8 opcode);
/* enum bth_class of any byte */
enum bth_class bth_class_of(__u8 opcode);
/* bytes of a packet that are not payload or pad: BTH, extended headers, ICRC */
__u8 bth_overhead(__u8 opcode);
/* "RDMA_WRITE"; "OTHER" beyond the enum */
const char *bth_class_name(unsigned int class);
/* "RC"; "-" for services that the specification does not define */
const char *bth_service_name(unsigned int service);
/*
 * Mark in chosen[] the opcodes that a name stands for: an opcode ("RC_SEND_ONLY"), a class
 * ("SEND"), or both with a service ("RC_SEND"). Case does not matter. False: no such name.
 */
bool bth_choose(const char *name, bool chosen[256]);

#endif /* ROCELAB_BTH_H */
