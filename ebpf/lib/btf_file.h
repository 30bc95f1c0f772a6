/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The types of the kernel or of a module, for a pass over all of them. libbpf's reader makes an
 * index of them and checks each, which takes several times as long as such a pass.
 */
#ifndef ROCELAB_BTF_FILE_H
#define ROCELAB_BTF_FILE_H

#include <linux/btf.h>
#include <linux/types.h>
#include <stdbool.h>

struct btf_file {
	void *data; /* NULL: none was read */
	const struct btf_type *types;
	const char *types_end;
	const char *strings;
	__u32 strings_length;
	__u32 first, end;	     /* numbers of the first type, and of the one after the last */
	const struct btf_file *base; /* whose types and strings come first; NULL: none */
};

/* From /sys/kernel/btf. base: the kernel's, for a module. False: there is none that can be read. */
bool btf_file_read(struct btf_file *file, const char *name, const struct btf_file *base);
void btf_file_free(struct btf_file *file);
/* The type after this one; NULL: it is the last. */
const struct btf_type *btf_file_next(const struct btf_file *file, const struct btf_type *type);
const char *btf_file_string(const struct btf_file *file, __u32 offset);

#endif /* ROCELAB_BTF_FILE_H */
