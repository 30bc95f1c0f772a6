/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of place_options.h. */
OPTION('p', "pid", "PID,...", "only queue pairs of these processes and their children")
OPTION('G', "cgroup", "PATH", "only queue pairs of processes in this cgroup (v2)")
OPTION('N', "netns", "NAME", "only those of processes in this network namespace")
