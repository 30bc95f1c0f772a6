// SPDX-License-Identifier: GPL-2.0-or-later
#include "placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

void placement_find(struct placement *at)
{
	char mine[MPI_MAX_PROCESSOR_NAME] = "", (*all)[MPI_MAX_PROCESSOR_NAME];
	const char *told = getenv("ROCELAB_NODE");
	int length;

	MPI_Comm_rank(MPI_COMM_WORLD, &at->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &at->ranks);
	if (told)
		snprintf(mine, sizeof(mine), "%s", told);
	else
		MPI_Get_processor_name(mine, &length);
	all = memory_get(at->ranks, sizeof(*all));
	MPI_Allgather(mine, sizeof(mine), MPI_CHAR, all, sizeof(mine), MPI_CHAR, MPI_COMM_WORLD);

	at->node = memory_get(at->ranks, sizeof(*at->node));
	at->on_node = memory_get(at->ranks, sizeof(*at->on_node));
	at->name = memory_get(at->ranks, sizeof(*at->name));
	at->nodes = 0;
	for (int rank = 0; rank < at->ranks; rank++) {
		int node = 0;

		while (node < at->nodes && strcmp(at->name[node], all[rank]))
			node++;
		if (node == at->nodes)
			memcpy(at->name[at->nodes++], all[rank], sizeof(*all));
		at->node[rank] = node;
		at->on_node[node]++;
	}
	free(all);
}

void placement_free(struct placement *at)
{
	free(at->node);
	free(at->on_node);
	free(at->name);
}

static int partner_of(int rank, int ranks)
{
	int half = ranks / 2;

	if (rank >= 2 * half)
		return -1;
	return rank < half ? rank + half : rank - half;
}

int placement_partner(const struct placement *at, bool all_pairs)
{
	int partner = partner_of(at->rank, at->ranks);

	if (!all_pairs && at->rank && partner)
		return -1;
	return partner;
}

int placement_pairs(const struct placement *at, bool all_pairs, int *across)
{
	int pairs = all_pairs ? at->ranks / 2 : 1;

	*across = 0;
	for (int rank = 0; rank < pairs; rank++)
		*across += at->node[rank] != at->node[partner_of(rank, at->ranks)];
	return pairs;
}
