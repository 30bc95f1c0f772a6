/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The symbols of a loaded module, from its file. /proc/kallsyms has them, too, but behind those
 * of the kernel: to read past these takes most of a second on an emulated machine.
 */
#ifndef ROCELAB_MODULE_FILE_H
#define ROCELAB_MODULE_FILE_H

#include <linux/types.h>
#include <stdbool.h>

/*
 * Calls `see` for each symbol that the module's running code and data have, with its address and
 * whether it is in code. Returns false, without a call, if the file is not where modules are
 * installed, is compressed, or is not the one that was loaded, or if the kernel hides addresses.
 */
bool module_file_symbols(const char *module, const char *release,
			 void (*see)(const char *name, __u64 address, bool code, void *context),
			 void *context);

#endif /* ROCELAB_MODULE_FILE_H */
