/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The option table: getopt, --help and the check of the man page all come from here.
 * OPTION(letter, name, argument or NULL, help); a letter above 255 has no short form.
 */
OPTION('d', "device", "NAME", "count only this RDMA device's work as the driver's")
OPTION('p', "pid", "PID,...", "these processes and their children: the benchmark")
OPTION('C', "comm", "NAME,...", "tasks of these names: the benchmark")
OPTION('G', "cgroup", "PATH", "tasks in this cgroup (v2): the benchmark")
OPTION('A', "per-cpu", NULL, "add a table for each CPU")
OPTION(OPT_STACKS, "stacks", "FILE", "write stacks and their times to FILE, folded")
#include "report_option_table.h"
#include "session_option_table.h"
