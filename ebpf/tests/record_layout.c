// SPDX-License-Identifier: GPL-2.0-only
/* Compiled with RECORD_HEADER and RECORD_LAYOUT given: one header as a table. */
#include "record_layout.h"

#include RECORD_HEADER
#include "stages.h"

#define FIELD(type, member) \
	{#type "." #member, offsetof(struct type, member), sizeof(((struct type *)0)->member)}
/* a constant, in the place of an offset */
#define VALUE(constant)	    {#constant, constant, 0}
#define TX_VALUE(id, ...)   VALUE(RXE_TX_##id),
#define RX_VALUE(id, ...)   VALUE(RXE_RX_##id),
#define DONE_VALUE(id, ...) VALUE(RXE_DONE_##id),

const struct record_field RECORD_LAYOUT[] = {
	FIELD(rxe_packet_id, begin),
	FIELD(rxe_packet_id, dev),
	FIELD(rxe_packet_id, qpn),
	FIELD(rxe_packet_id, dqpn),
	FIELD(rxe_packet_id, psn),
	FIELD(rxe_packet_id, paylen),
	FIELD(rxe_packet_id, payload),
	FIELD(rxe_packet_id, opcode),
	FIELD(rxe_packet_id, net),
	FIELD(rxe_packet_id, role),
	FIELD(rxe_packet_id, flags),
	FIELD(rxe_tx_record, id),
	FIELD(rxe_tx_record, stage),
	FIELD(rxe_rx_record, id),
	FIELD(rxe_rx_record, stage),
	FIELD(rxe_done_record, id),
	FIELD(rxe_done_record, stage),
	FIELD(rxe_tx_stamps, id),
	FIELD(rxe_tx_stamps, end),
	FIELD(rxe_rx_stamps, id),
	FIELD(rxe_rx_stamps, stage),
	FIELD(rxe_rx_stamps, arrival),
	TX_PACKET_STAGES(TX_VALUE) VALUE(RXE_TX_STAGES),
	RX_PACKET_STAGES(RX_VALUE) VALUE(RXE_RX_STAGES),
	RX_DONE_STAGES(DONE_VALUE) VALUE(RXE_DONE_STAGES),
	VALUE(RXE_NET_V1),
	VALUE(RXE_NET_V2_IPV4),
	VALUE(RXE_NET_V2_IPV6),
	VALUE(RXE_ROLE_REQUESTER),
	VALUE(RXE_ROLE_RESPONDER),
	VALUE(RXE_FLAG_SWITCHED),
	VALUE(RXE_FLAG_LOOPBACK),
	VALUE(RXE_FLAG_ARRIVED),
	VALUE(RXE_FLAG_DONE),
	VALUE(RXE_FLAG_RX_SWITCHED),
	VALUE(RXE_FLAG_SLEPT),
	{NULL, 0, 0},
};
