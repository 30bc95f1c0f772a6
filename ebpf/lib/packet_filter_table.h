/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of packet_filter.h. */
OPTION('d', "device", "NAME", "only this RDMA device")
OPTION('q', "qpn", "NUMBER", "only this local queue pair")
OPTION('G', "cgroup", "PATH", "only queue pairs of processes in this cgroup (v2)")
OPTION('N', "netns", "NAME", "only those of processes in this network namespace")
OPTION('D', "direction", "tx|rx", "only sent, or only received packets")
OPTION('O', "opcode", "NAME,...", "only these opcodes (RC_SEND_ONLY), classes (SEND)")
