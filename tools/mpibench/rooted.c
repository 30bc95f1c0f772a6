// SPDX-License-Identifier: GPL-2.0-or-later
/* Collectives with a root: bcast, scatter, gather, reduce. Sizes are bytes of each rank. */
#include "bench.h"

#include <string.h>

#include "pattern.h"

static void bcast(struct run *run)
{
	MPI_Bcast(run->recv, (int)run->size, MPI_BYTE, run->root, MPI_COMM_WORLD);
}

static void scatter(struct run *run)
{
	int bytes = (int)run->size;

	MPI_Scatter(run->send, bytes, MPI_BYTE, run->recv, bytes, MPI_BYTE, run->root,
		    MPI_COMM_WORLD);
}

static void gather(struct run *run)
{
	int bytes = (int)run->size;

	MPI_Gather(run->send, bytes, MPI_BYTE, run->recv, bytes, MPI_BYTE, run->root,
		   MPI_COMM_WORLD);
}

static void reduce(struct run *run)
{
	MPI_Reduce(run->send, run->recv, (int)(run->size / ELEMENT), MPI_FLOAT, MPI_SUM, run->root,
		   MPI_COMM_WORLD);
}

static size_t check_bcast(struct run *run, size_t *first)
{
	if (run->at->rank == run->root)
		pattern_fill(run->recv, run->size, run->root, -1);
	else
		memset(run->recv, POISON, run->size);
	bcast(run);
	return pattern_wrong(run->recv, run->size, run->root, -1, first);
}

static size_t check_scatter(struct run *run, size_t *first)
{
	for (int to = 0; to < run->at->ranks; to++)
		pattern_fill(run->send + (size_t)to * run->size, run->size, run->root, to);
	memset(run->recv, POISON, run->size);
	scatter(run);
	return pattern_wrong(run->recv, run->size, run->root, run->at->rank, first);
}

static size_t check_gather(struct run *run, size_t *first)
{
	size_t wrong = 0, at = 0;

	pattern_fill(run->send, run->size, run->at->rank, run->root);
	memset(run->recv, POISON, run->size * (size_t)run->at->ranks);
	gather(run);
	if (run->at->rank != run->root)
		return 0;
	for (int from = 0; from < run->at->ranks; from++) {
		size_t skip = (size_t)from * run->size;
		size_t here = pattern_wrong(run->recv + skip, run->size, from, run->root, &at);

		if (here && !wrong)
			*first = skip + at;
		wrong += here;
	}
	return wrong;
}

static size_t check_reduce(struct run *run, size_t *first)
{
	size_t elements = run->size / ELEMENT;

	numbers_fill(run->send, elements, run->at->rank);
	memset(run->recv, POISON, run->size);
	reduce(run);
	if (run->at->rank != run->root)
		return 0;
	return numbers_wrong_sum(run->recv, elements, 0, run->at->ranks, first);
}

/* the data cross once to each other node, or once from each other node to the root's */
static struct floor once_a_node(const struct run *run)
{
	uint64_t others = (uint64_t)run->at->nodes - 1;

	return (struct floor){others * run->size, others};
}

/* a separate block for each rank that is not on the root's node */
static struct floor once_a_rank(const struct run *run)
{
	const struct placement *at = run->at;
	uint64_t others = (uint64_t)(at->ranks - at->on_node[at->node[run->root]]);

	/* a tree may send the blocks of a node in one message */
	return (struct floor){others * run->size, (uint64_t)at->nodes - 1};
}

const struct test ROOTED_TESTS[] = {
	{.name = "bcast",
	 .shape = COLLECTIVE,
	 .rooted = true,
	 .sized = true,
	 .ways = 1,
	 .once = bcast,
	 .check = check_bcast,
	 .floor = once_a_node},
	{.name = "scatter",
	 .shape = COLLECTIVE,
	 .rooted = true,
	 .sized = true,
	 .ways = 1,
	 .once = scatter,
	 .check = check_scatter,
	 .floor = once_a_rank},
	{.name = "gather",
	 .shape = COLLECTIVE,
	 .rooted = true,
	 .sized = true,
	 .ways = 1,
	 .once = gather,
	 .check = check_gather,
	 .floor = once_a_rank},
	{.name = "reduce",
	 .shape = COLLECTIVE,
	 .rooted = true,
	 .sized = true,
	 .reduces = true,
	 .ways = 1,
	 .once = reduce,
	 .check = check_reduce,
	 .floor = once_a_node},
	{},
};
