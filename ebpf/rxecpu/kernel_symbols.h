/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of the kernel's functions by address. */
#ifndef KERNEL_SYMBOLS_H
#define KERNEL_SYMBOLS_H

#include <linux/types.h>
#include <stddef.h>

struct kernel_symbol {
	__u64 address;
	char *name;
};

struct kernel_symbols {
	struct kernel_symbol *at;
	size_t count;
};

/* 0, or a negative errno: -EPERM if the addresses are hidden. Free them in any case. */
int kernel_symbols_read(struct kernel_symbols *s);
/* NULL: unknown */
const char *kernel_symbols_find(const struct kernel_symbols *s, __u64 address);
void kernel_symbols_free(struct kernel_symbols *s);

#endif /* KERNEL_SYMBOLS_H */
