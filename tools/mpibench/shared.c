// SPDX-License-Identifier: GPL-2.0-or-later
/* Collectives after which all ranks have the same data: allreduce, allgather, barrier. */
#include "bench.h"

#include <string.h>

#include "pattern.h"

#define TAG_GOING 9
#define LATE	  2e-3

static void allreduce(struct run *run)
{
	MPI_Allreduce(run->send, run->recv, (int)(run->size / ELEMENT), MPI_FLOAT, MPI_SUM,
		      MPI_COMM_WORLD);
}

static void allgather(struct run *run)
{
	int bytes = (int)run->size;

	MPI_Allgather(run->send, bytes, MPI_BYTE, run->recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void barrier(struct run *run)
{
	(void)run;
	MPI_Barrier(MPI_COMM_WORLD);
}

static size_t check_allreduce(struct run *run, size_t *first)
{
	size_t elements = run->size / ELEMENT;

	numbers_fill(run->send, elements, run->at->rank);
	memset(run->recv, POISON, run->size);
	allreduce(run);
	return numbers_wrong_sum(run->recv, elements, 0, run->at->ranks, first);
}

static size_t check_allgather(struct run *run, size_t *first)
{
	size_t wrong = 0, at = 0;

	pattern_fill(run->send, run->size, run->at->rank, -1);
	memset(run->recv, POISON, run->size * (size_t)run->at->ranks);
	allgather(run);
	for (int from = 0; from < run->at->ranks; from++) {
		size_t skip = (size_t)from * run->size;
		size_t here = pattern_wrong(run->recv + skip, run->size, from, -1, &at);

		if (here && !wrong)
			*first = skip + at;
		wrong += here;
	}
	return wrong;
}

/*
 * No rank may leave before all have entered. The rank `root` enters last, LATE seconds after all
 * others have announced that they enter, so each of them must wait at least that long by its own
 * clock.
 */
static size_t check_barrier(struct run *run, size_t *first)
{
	const struct placement *at = run->at;
	double began;

	*first = 0;
	if (at->rank != run->root) {
		MPI_Send(NULL, 0, MPI_BYTE, run->root, TAG_GOING, MPI_COMM_WORLD);
		began = MPI_Wtime();
		barrier(run);
		return MPI_Wtime() - began < LATE;
	}
	for (int others = 1; others < at->ranks; others++)
		MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_GOING, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	began = MPI_Wtime();
	while (MPI_Wtime() - began < LATE * 1.5)
		;
	barrier(run);
	return 0;
}

/* every node needs what the others have, combined */
static struct floor combined(const struct run *run)
{
	uint64_t nodes = run->at->nodes > 1 ? (uint64_t)run->at->nodes : 0;

	return (struct floor){nodes * run->size, nodes};
}

static struct floor each_block(const struct run *run)
{
	const struct placement *at = run->at;
	struct floor floor = {0, at->nodes > 1 ? (uint64_t)at->nodes : 0};

	for (int node = 0; node < at->nodes; node++)
		floor.bytes += (uint64_t)(at->ranks - at->on_node[node]) * run->size;
	return floor;
}

const struct test SHARED_TESTS[] = {
	{.name = "allreduce",
	 .shape = COLLECTIVE,
	 .sized = true,
	 .reduces = true,
	 .ways = 1,
	 .once = allreduce,
	 .check = check_allreduce,
	 .floor = combined},
	{.name = "allgather",
	 .shape = COLLECTIVE,
	 .sized = true,
	 .ways = 1,
	 .once = allgather,
	 .check = check_allgather,
	 .floor = each_block},
	{.name = "barrier",
	 .shape = COLLECTIVE,
	 .rooted = true, /* the rank that enters last */
	 .ways = 1,
	 .once = barrier,
	 .check = check_barrier,
	 .floor = combined},
	{},
};
