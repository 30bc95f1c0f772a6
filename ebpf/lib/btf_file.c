// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "btf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* all of a file in sysfs, whose size is known and which comes in pieces */
static bool read_all(int fd, char *into, size_t size)
{
	while (size) {
		ssize_t n = read(fd, into, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		into += n;
		size -= n;
	}
	return true;
}

static void *read_file(const char *name, size_t *size)
{
	char path[96], *data = NULL;
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/btf/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st))
		data = malloc(st.st_size);
	if (data && !read_all(fd, data, st.st_size)) {
		free(data);
		data = NULL;
	}
	*size = data ? st.st_size : 0;
	close(fd);
	return data;
}

/* bytes of a type with what follows it; 0: of a kind that we do not know */
static size_t type_size(const struct btf_type *type)
{
	unsigned int length = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return sizeof(*type);
	case BTF_KIND_INT:
		return sizeof(*type) + sizeof(__u32);
	case BTF_KIND_ARRAY:
		return sizeof(*type) + sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return sizeof(*type) + length * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return sizeof(*type) + length * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return sizeof(*type) + length * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return sizeof(*type) + length * sizeof(struct btf_param);
	case BTF_KIND_VAR:
		return sizeof(*type) + sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return sizeof(*type) + length * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG:
		return sizeof(*type) + sizeof(struct btf_decl_tag);
	default:
		return 0;
	}
}

static bool is_within(const struct btf_file *file, const struct btf_type *type)
{
	size_t left = file->types_end - (const char *)type;

	return left >= sizeof(*type) && type_size(type) && type_size(type) <= left;
}

const struct btf_type *btf_file_next(const struct btf_file *file, const struct btf_type *type)
{
	type = (const void *)((const char *)type + type_size(type));
	return is_within(file, type) ? type : NULL;
}

static bool find_parts(struct btf_file *file, size_t size)
{
	const struct btf_header *h = file->data;
	const char *after = (const char *)file->data;
	size_t left;

	if (size < sizeof(*h) || h->magic != BTF_MAGIC || h->hdr_len > size)
		return false;
	after += h->hdr_len;
	left = size - h->hdr_len;
	if (h->type_off > left || h->type_len > left - h->type_off || h->str_off > left ||
	    h->str_len > left - h->str_off || !h->str_len || after[h->str_off + h->str_len - 1])
		return false;
	file->types = (const void *)(after + h->type_off);
	file->types_end = after + h->type_off + h->type_len;
	file->strings = after + h->str_off;
	file->strings_length = h->str_len;
	return is_within(file, file->types);
}

bool btf_file_read(struct btf_file *file, const char *name, const struct btf_file *base)
{
	const struct btf_type *type;
	size_t size;

	*file = (struct btf_file){.base = base, .first = base ? base->end : 1};
	file->data = read_file(name, &size);
	if (!file->data || !find_parts(file, size)) {
		btf_file_free(file);
		return false;
	}
	file->end = file->first;
	for (type = file->types; type; type = btf_file_next(file, type))
		file->end++;
	return true;
}

void btf_file_free(struct btf_file *file)
{
	free(file->data);
	*file = (struct btf_file){};
}

const char *btf_file_string(const struct btf_file *file, __u32 offset)
{
	const struct btf_file *base = file->base;

	if (base && offset < base->strings_length)
		return base->strings + offset;
	offset -= base ? base->strings_length : 0;
	return offset < file->strings_length ? file->strings + offset : "";
}
