/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Forget what a BPF map holds. Functions return 0 or a negative errno. */
#ifndef ROCELAB_MAP_CLEAR_H
#define ROCELAB_MAP_CLEAR_H

struct bpf_map;

/* Delete all keys of a hash, or all stacks. A map that was not created has none. */
int map_clear_keys(const struct bpf_map *map);
/* Zero all elements of an array. */
int map_clear_array(const struct bpf_map *map);

#endif /* ROCELAB_MAP_CLEAR_H */
