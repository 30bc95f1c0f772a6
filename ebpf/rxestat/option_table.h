/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The option table: getopt, --help and the check of the man page all come from here.
 * OPTION(letter, name, argument or NULL, help); a letter above 255 has no short form.
 */
OPTION('d', "device", "NAME", "only this RDMA device")
OPTION('q', "qpn", "NUMBER", "only this local queue pair")
OPTION('D', "direction", "tx|rx", "only sent, or only received packets")
OPTION('p', "opcode", "NAME,...", "only these opcodes (RC_SEND_ONLY), classes (SEND)")
OPTION('I', "interval", "MS", "print every MS milliseconds instead of once, at the end")
OPTION('c', "count", "N", "end after N intervals")
OPTION('j', "json", NULL, "JSON instead of tables; one line an interval with -I")
OPTION('o', "output", "FILE", "write to FILE, which appears whole, at the end")
OPTION('n', "node", "NAME", "name of this machine (default: its host name)")
OPTION(OPT_BPF_STATS, "bpf-stats", NULL, "have the kernel time each run of our programs")
OPTION('h', "help", NULL, "print this help and exit")
OPTION('V', "version", NULL, "print the version and exit")
