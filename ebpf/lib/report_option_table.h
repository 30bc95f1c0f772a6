/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of report_options.h. */
OPTION('I', "interval", "MS", "report every MS milliseconds, not only at the end")
OPTION('c', "count", "N", "end after N intervals")
OPTION('j', "json", NULL, "JSON instead of tables")
OPTION('o', "output", "FILE", "write to FILE: whole, at the end; with -I as it goes")
