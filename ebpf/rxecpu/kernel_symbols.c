// SPDX-License-Identifier: GPL-2.0-only
#include "kernel_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	__u64 left = ((const struct kernel_symbol *)a)->address;
	__u64 right = ((const struct kernel_symbol *)b)->address;

	return left < right ? -1 : left > right;
}

static int add(struct kernel_symbols *s, __u64 address, const char *name)
{
	if (!(s->count & (s->count - 1))) {
		size_t room = s->count ? 2 * s->count : 1;
		struct kernel_symbol *more = realloc(s->at, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->at = more;
	}
	s->at[s->count].address = address;
	s->at[s->count].name = strdup(name);
	return s->at[s->count++].name ? 0 : -ENOMEM;
}

int kernel_symbols_read(struct kernel_symbols *s)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long address;
	char line[512], name[256];
	int err = f ? 0 : -errno;
	char type;

	memset(s, 0, sizeof(*s));
	while (f && !err && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %c %255s", &address, &type, name) == 3 && address &&
		    strchr("tTwW", type))
			err = add(s, address, name);
	}
	if (f)
		fclose(f);
	qsort(s->at, s->count, sizeof(*s->at), compare);
	return err ?: s->count ? 0 : -EPERM;
}

const char *kernel_symbols_find(const struct kernel_symbols *s, __u64 address)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->at[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? s->at[low - 1].name : NULL;
}

void kernel_symbols_free(struct kernel_symbols *s)
{
	while (s->count)
		free(s->at[--s->count].name);
	free(s->at);
	s->at = NULL;
}
