/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef MPIBENCH_PLACEMENT_H
#define MPIBENCH_PLACEMENT_H

#include "bench.h"

/* every rank's node: $ROCELAB_NODE, or the processor's name */
void placement_find(struct placement *at);
void placement_free(struct placement *at);

/* the rank that this one exchanges messages with, or -1 (an odd one out, or not the first pair) */
int placement_partner(const struct placement *at, bool all_pairs);
/* of these pairs, those whose ends are on different nodes */
int placement_pairs(const struct placement *at, bool all_pairs, int *across);

#endif /* MPIBENCH_PLACEMENT_H */
