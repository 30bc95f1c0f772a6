/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The option table: getopt, --help and the check of the man page all come from here.
 * OPTION(letter, name, argument or NULL, help); a letter above 255 has no short form.
 */
OPTION('b', "batch", NULL, "print table after table; for pipes and files")
OPTION('n', "iterations", "N", "end after N tables or documents")
OPTION('I', "interval", "MS", "look every MS milliseconds (default: 2000)")
OPTION('j', "json", NULL, "JSON instead of tables, a document a line")
OPTION('d', "device", "NAME", "only this RDMA device")
#include "place_option_table.h"
OPTION('f', "filter", "TEXT", "only where command or peer has it, or QPN or PID is it")
OPTION('g', "group", "KEY", "a row for each command, pid, device, peer, cgroup, ...")
OPTION('s', "sort", "KEY", "packets, bytes, requests, latency, stage, losses, ...")
OPTION('T', "stage", "NAME", "the stage to look at (default: tx.icrc)")
OPTION('w', "view", "NAME", "begin with latency, peer, stage or losses")
OPTION('i', "idle", NULL, "queue pairs of which nothing was counted, too")
OPTION('S', "sample", "N", "only one of N packets and requests, a power of 2")
OPTION(OPT_BPF_STATS, "bpf-stats", NULL, "make the kernel time each run of our programs")
OPTION(OPT_CONTROL, "control", NULL, "measure in windows, as lines on standard input say")
OPTION('v', "verbose", NULL, "print what libbpf and the kernel's verifier say")
OPTION('h', "help", NULL, "print this help and exit")
OPTION('V', "version", NULL, "print the version and exit")
