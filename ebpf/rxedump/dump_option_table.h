/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The option table: getopt, --help and the check of the man page all come from here.
 * OPTION(letter, name, argument or NULL, help); a letter above 255 has no short form.
 */
OPTION('w', "write", "FILE", "write pcapng to FILE, - for standard output")
#include "packet_filter_table.h"
OPTION('F', "follow", "MESSAGE", "only one message: QPN:PSN, or QPN:#N: the Nth sent")
OPTION('s', "snapshot-length", "N", "keep only the first N bytes of each frame; 0: all")
OPTION('S', "sample", "N", "only one packet in N, the same at both ends")
OPTION('c', "count", "N", "end after N packets")
OPTION('C', "file-size", "MB", "begin the next file at MB million bytes")
OPTION('W', "file-count", "N", "with --file-size: keep only the newest N files")
OPTION('B', "buffer-size", "KIB", "size of the kernel's buffer (8192)")
OPTION('H', "hold", "MS", "wait MS ms for a packet's last stages (1000)")
#include "session_option_table.h"
