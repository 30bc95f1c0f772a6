// SPDX-License-Identifier: GPL-2.0-or-later
/* Collectives after which each rank has a different part: alltoall, reduce_scatter. */
#include "bench.h"

#include <string.h>

#include "pattern.h"

static void alltoall(struct run *run)
{
	int bytes = (int)run->size;

	MPI_Alltoall(run->send, bytes, MPI_BYTE, run->recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static size_t check_alltoall(struct run *run, size_t *first)
{
	int ranks = run->at->ranks, mine = run->at->rank;
	size_t wrong = 0, at = 0;

	for (int to = 0; to < ranks; to++)
		pattern_fill(run->send + (size_t)to * run->size, run->size, mine, to);
	memset(run->recv, POISON, run->size * (size_t)ranks);
	alltoall(run);
	for (int from = 0; from < ranks; from++) {
		size_t skip = (size_t)from * run->size;
		size_t here = pattern_wrong(run->recv + skip, run->size, from, mine, &at);

		if (here && !wrong)
			*first = skip + at;
		wrong += here;
	}
	return wrong;
}

static struct floor to_other_nodes(const struct run *run)
{
	const struct placement *at = run->at;
	struct floor floor = {0, at->nodes > 1 ? (uint64_t)at->nodes : 0};

	for (int node = 0; node < at->nodes; node++) {
		uint64_t here = (uint64_t)at->on_node[node];

		floor.bytes += here * ((uint64_t)at->ranks - here) * run->size;
	}
	return floor;
}

/* The whole vector is `size` bytes; if it does not divide evenly, the first ranks get one element
 * more.
 */
static void share_out(struct run *run)
{
	size_t elements = run->size / ELEMENT, ranks = (size_t)run->at->ranks;

	for (size_t rank = 0; rank < ranks; rank++)
		run->counts[rank] = (int)(elements / ranks + (rank < elements % ranks));
}

static void reduce_scatter(struct run *run)
{
	share_out(run);
	MPI_Reduce_scatter(run->send, run->recv, run->counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static size_t check_reduce_scatter(struct run *run, size_t *first)
{
	size_t skip = 0;

	share_out(run);
	for (int rank = 0; rank < run->at->rank; rank++)
		skip += (size_t)run->counts[rank];
	numbers_fill(run->send, run->size / ELEMENT, run->at->rank);
	memset(run->recv, POISON, run->size);
	reduce_scatter(run);
	return numbers_wrong_sum(run->recv, (size_t)run->counts[run->at->rank], skip,
				 run->at->ranks, first);
}

/* each element's sum needs a term from every node, at one of them */
static struct floor combined_apart(const struct run *run)
{
	uint64_t others = (uint64_t)run->at->nodes - 1;

	return (struct floor){others * run->size, others};
}

const struct test SPREAD_TESTS[] = {
	{.name = "alltoall",
	 .shape = COLLECTIVE,
	 .sized = true,
	 .ways = 1,
	 .once = alltoall,
	 .check = check_alltoall,
	 .floor = to_other_nodes},
	{.name = "reduce_scatter",
	 .shape = COLLECTIVE,
	 .sized = true,
	 .reduces = true,
	 .ways = 1,
	 .once = reduce_scatter,
	 .check = check_reduce_scatter,
	 .floor = combined_apart},
	{},
};
