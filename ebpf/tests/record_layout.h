/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ROCELAB_RECORD_LAYOUT_H
#define ROCELAB_RECORD_LAYOUT_H

#include <stddef.h>

struct record_field {
	const char *name;
	size_t offset, size;
};

/* each ends with a NULL name */
extern const struct record_field record_layout_driver[];
extern const struct record_field record_layout_ebpf[];

#endif /* ROCELAB_RECORD_LAYOUT_H */
