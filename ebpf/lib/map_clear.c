// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "map_clear.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdlib.h>
#include <string.h>

#define MAX_KEY 64

int map_clear_keys(const struct bpf_map *map)
{
	char key[MAX_KEY], next[MAX_KEY];
	int fd = bpf_map__fd(map), err;

	if (!bpf_map__autocreate(map))
		return 0;
	if (bpf_map__key_size(map) > MAX_KEY)
		return -E2BIG;
	/* the key after one that is gone is the first: ask before it goes */
	for (err = bpf_map_get_next_key(fd, NULL, key); !err;) {
		err = bpf_map_get_next_key(fd, key, next);
		if (bpf_map_delete_elem(fd, key) && errno != ENOENT)
			return -errno;
		memcpy(key, next, sizeof(key));
	}
	return 0;
}

int map_clear_array(const struct bpf_map *map)
{
	void *zeros = calloc(1, bpf_map__value_size(map));
	int fd = bpf_map__fd(map), err = zeros ? 0 : -ENOMEM;

	for (__u32 i = 0; i < bpf_map__max_entries(map) && !err; i++)
		err = bpf_map_update_elem(fd, &i, zeros, BPF_ANY) ? -errno : 0;
	free(zeros);
	return err;
}
