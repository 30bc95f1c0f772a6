/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The option table: getopt, --help and the check of the man page all come from here.
 * OPTION(letter, name, argument or NULL, help); a letter above 255 has no short form.
 */
OPTION('d', "device", "NAME", "only this RDMA device's work is the driver's")
OPTION('p', "pid", "PID,...", "these processes and their children: the benchmark")
OPTION('C', "comm", "NAME,...", "tasks of these names: the benchmark")
OPTION('G', "cgroup", "PATH", "tasks in this cgroup (v2): the benchmark")
OPTION('A', "per-cpu", NULL, "a table for each CPU beside their sum")
OPTION('I', "interval", "MS", "print every MS milliseconds; in JSON a time series")
OPTION('c', "count", "N", "end after N intervals")
OPTION('j', "json", NULL, "JSON instead of tables: one document, at the end")
OPTION('o', "output", "FILE", "write to FILE, which appears whole, at the end")
OPTION('n', "node", "NAME", "name of this machine (default: its host name)")
OPTION(OPT_BPF_STATS, "bpf-stats", NULL, "have the kernel time each run of our programs")
OPTION('h', "help", NULL, "print this help and exit")
OPTION('V', "version", NULL, "print the version and exit")
