/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The option table: getopt, --help and the check of the man page all come from here.
 * OPTION(letter, name, argument or NULL, help); a letter above 255 has no short form.
 */
#include "packet_filter_table.h"
OPTION('g', "group", "KEY", "a table for each cgroup, or netns, of the processes")
OPTION('S', "sample", "N", "only one of N packets, a power of 2, chosen by its PSN")
OPTION('x', "xmit", NULL, "follow sent packets to the device: the stage xmit")
OPTION(OPT_OPENMETRICS, "openmetrics", "[ADDR]:PORT", "serve metrics for Prometheus over HTTP")
OPTION('w', "work-requests", NULL, "from post to completion, by queue pair and opcode")
OPTION('H', "histograms", NULL, "tables with a histogram of each stage, p99.9 and p99.99")
OPTION('e', "event", "NAME", "count this event in kernel mode (default: cycles)")
#include "report_option_table.h"
#include "session_option_table.h"
