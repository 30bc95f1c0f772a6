/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of session_options.h, and those that options.h takes itself. */
OPTION('n', "node", "NAME", "name of this machine (default: its host name)")
OPTION(OPT_BPF_STATS, "bpf-stats", NULL, "make the kernel time each run of our programs")
OPTION(OPT_CONTROL, "control", NULL, "measure in windows, as lines on standard input say")
OPTION('v', "verbose", NULL, "print what libbpf and the kernel's verifier say")
OPTION('h', "help", NULL, "print this help and exit")
OPTION('V', "version", NULL, "print the version and exit")
