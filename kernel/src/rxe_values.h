/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The values in the events. Each list defines the enum here and the names in
 * the print format of the event. They are an ABI: values may only be appended.
 */
#ifndef RXE_VALUES_H
#define RXE_VALUES_H

#define RXE_LIST_ENUM(id, name)	id,

/* a task of a QP: 6.1 runs the first three, 6.12 and later the last two */
#define RXE_TASKS(EM, EML)					\
	EM(RXE_TASK_REQUESTER,		"requester")		\
	EM(RXE_TASK_COMPLETER,		"completer")		\
	EM(RXE_TASK_RESPONDER,		"responder")		\
	EM(RXE_TASK_SEND,		"send")			\
	EML(RXE_TASK_RECV,		"recv")

enum rxe_task_kind { RXE_TASKS(RXE_LIST_ENUM, RXE_LIST_ENUM) };

/* why unacknowledged packets are sent again */
#define RXE_RETRY_REASONS(EM, EML)				\
	EM(RXE_RETRY_TIMEOUT,		"timeout")		\
	EM(RXE_RETRY_RNR,		"rnr")			\
	EM(RXE_RETRY_SEQ_NAK,		"seq_nak")		\
	EML(RXE_RETRY_IMPLIED_NAK,	"implied_nak")

enum rxe_retry_reason { RXE_RETRY_REASONS(RXE_LIST_ENUM, RXE_LIST_ENUM) };

#define RXE_NAK_DIRS(EM, EML)					\
	EM(RXE_NAK_SENT,		"sent")			\
	EML(RXE_NAK_RECEIVED,		"received")

enum rxe_nak_dir { RXE_NAK_DIRS(RXE_LIST_ENUM, RXE_LIST_ENUM) };

/* receiver not ready: the NAK at either end, and the end of the wait for it */
#define RXE_RNR_STEPS(EM, EML)					\
	EM(RXE_RNR_SENT,		"sent")			\
	EM(RXE_RNR_RECEIVED,		"received")		\
	EML(RXE_RNR_EXPIRED,		"expired")

enum rxe_rnr_step { RXE_RNR_STEPS(RXE_LIST_ENUM, RXE_LIST_ENUM) };

/* what changed the state of a QP */
#define RXE_QP_CAUSES(EM, EML)					\
	EM(RXE_QP_MODIFY,		"modify")		\
	EM(RXE_QP_REQUESTER,		"requester")		\
	EM(RXE_QP_COMPLETER,		"completer")		\
	EML(RXE_QP_RESPONDER,		"responder")

enum rxe_qp_cause { RXE_QP_CAUSES(RXE_LIST_ENUM, RXE_LIST_ENUM) };

/* a packet for no rxe device, or without a BTH */
#define RXE_DEV_NONE		(~0U)
#define RXE_OPCODE_NONE		0xff

/* why a packet was dropped; 0 is no reason, so that checks may return it */
#define RXE_DROP_REASONS(EM, EML)				\
	EM(RXE_DROP_NONE,		"none")			\
	EM(RXE_DROP_NO_DEVICE,		"no_device")		\
	EM(RXE_DROP_NO_MEMORY,		"no_memory")		\
	EM(RXE_DROP_SHORT,		"short")		\
	EM(RXE_DROP_DGID,		"dgid")			\
	EM(RXE_DROP_OPCODE,		"opcode")		\
	EM(RXE_DROP_LENGTH,		"length")		\
	EM(RXE_DROP_VERSION,		"version")		\
	EM(RXE_DROP_QPN,		"qpn")			\
	EM(RXE_DROP_QP_TYPE,		"qp_type")		\
	EM(RXE_DROP_QP_STATE,		"qp_state")		\
	EM(RXE_DROP_ADDRESS,		"address")		\
	EM(RXE_DROP_PKEY,		"pkey")			\
	EM(RXE_DROP_QKEY,		"qkey")			\
	EM(RXE_DROP_NO_GRH,		"no_grh")		\
	EM(RXE_DROP_ICRC,		"icrc")			\
	EM(RXE_DROP_MCAST_GROUP,	"mcast_group")		\
	EM(RXE_DROP_MCAST_QP,		"mcast_qp")		\
	EM(RXE_DROP_SEQUENCE,		"sequence")		\
	EM(RXE_DROP_NO_RQ_WQE,		"no_rq_wqe")		\
	EM(RXE_DROP_UNEXPECTED,		"unexpected")		\
	EM(RXE_DROP_FLUSHED,		"flushed")		\
	EM(RXE_DROP_SEND_STATE,		"send_state")		\
	EM(RXE_DROP_SEND,		"send")			\
	EM(RXE_DROP_GRH,		"grh")			\
	EM(RXE_DROP_OTHERHOST,		"otherhost")		\
	EML(RXE_DROP_NETNS,		"netns")

enum rxe_drop_reason { RXE_DROP_REASONS(RXE_LIST_ENUM, RXE_LIST_ENUM) };

#endif /* RXE_VALUES_H */
