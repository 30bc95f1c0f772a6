/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of packet_filter.h. */
OPTION('d', "device", "NAME", "only this RDMA device")
OPTION('q', "qpn", "NUMBER", "only this local queue pair")
#include "place_option_table.h"
OPTION('D', "direction", "tx|rx", "only sent, or only received packets")
OPTION('O', "opcode", "NAME,...", "only these opcodes (RC_SEND_ONLY), classes (SEND)")
