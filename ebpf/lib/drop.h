/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why the driver dropped a packet: its numbers and names (kernel/src/rxe_record.h; make check). */
#ifndef ROCELAB_DROP_H
#define ROCELAB_DROP_H

/* X(NAME, "name"), in the driver's order */
#define DROP_REASONS(X)               \
	X(NONE, "none")               \
	X(NO_DEVICE, "no_device")     \
	X(NO_MEMORY, "no_memory")     \
	X(SHORT, "short")             \
	X(DGID, "dgid")               \
	X(OPCODE, "opcode")           \
	X(LENGTH, "length")           \
	X(VERSION, "version")         \
	X(QPN, "qpn")                 \
	X(QP_TYPE, "qp_type")         \
	X(QP_STATE, "qp_state")       \
	X(ADDRESS, "address")         \
	X(PKEY, "pkey")               \
	X(QKEY, "qkey")               \
	X(NO_GRH, "no_grh")           \
	X(ICRC, "icrc")               \
	X(MCAST_GROUP, "mcast_group") \
	X(MCAST_QP, "mcast_qp")       \
	X(SEQUENCE, "sequence")       \
	X(NO_RECV, "no_recv")         \
	X(UNEXPECTED, "unexpected")   \
	X(FLUSHED, "flushed")         \
	X(SEND_STATE, "send_state")   \
	X(SEND, "send")               \
	X(GRH, "grh")                 \
	X(OTHERHOST, "otherhost")     \
	X(NETNS, "netns")

#define DROP_ENUM(id, name) DROP_##id,
enum drop_reason { DROP_REASONS(DROP_ENUM) DROP_COUNT };

/* "unknown" beyond the enum: a newer driver's */
const char *drop_name(unsigned int reason);

#endif /* ROCELAB_DROP_H */
