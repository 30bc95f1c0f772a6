// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Point to point: ping-pong and streams, of one pair or of all.
 *
 * Pairs are those of OSU's multi-pair tests: rank i of the first half with i of the second, so
 * that ranks placed in blocks have their partners on the other node.
 */
#include "bench.h"

#include <string.h>

#include "pattern.h"
#include "placement.h"

enum { TAG_DATA = 1, TAG_BACK, TAG_DONE };

/* -1 as MPI_PROC_NULL is not portable: a rank without a partner does nothing */
static int partner(const struct run *run, bool all_pairs, bool *sends)
{
	int found = placement_partner(run->at, all_pairs);

	*sends = run->at->rank < run->at->ranks / 2;
	return found;
}

static void ping_pong(struct run *run, bool all_pairs)
{
	bool first;
	int other = partner(run, all_pairs, &first), bytes = (int)run->size;

	if (other < 0)
		return;
	if (first) {
		MPI_Send(run->send, bytes, MPI_BYTE, other, TAG_DATA, MPI_COMM_WORLD);
		MPI_Recv(run->recv, bytes, MPI_BYTE, other, TAG_BACK, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(run->recv, bytes, MPI_BYTE, other, TAG_DATA, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		MPI_Send(run->send, bytes, MPI_BYTE, other, TAG_BACK, MPI_COMM_WORLD);
	}
}

/* A window of messages, and a short answer when all have arrived. */
static void stream(struct run *run, bool all_pairs)
{
	bool first;
	int other = partner(run, all_pairs, &first), bytes = (int)run->size;
	char done[4] = "";

	if (other < 0)
		return;
	for (int i = 0; i < run->window; i++) {
		if (first)
			MPI_Isend(run->send, bytes, MPI_BYTE, other, TAG_DATA, MPI_COMM_WORLD,
				  &run->requests[i]);
		else
			MPI_Irecv(run->recv, bytes, MPI_BYTE, other, TAG_DATA, MPI_COMM_WORLD,
				  &run->requests[i]);
	}
	MPI_Waitall(run->window, run->requests, MPI_STATUSES_IGNORE);
	if (first)
		MPI_Recv(done, sizeof(done), MPI_BYTE, other, TAG_DONE, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	else
		MPI_Send(done, sizeof(done), MPI_BYTE, other, TAG_DONE, MPI_COMM_WORLD);
}

/* Both directions at once; the windows answer each other. */
static void both_ways(struct run *run)
{
	bool first;
	int other = partner(run, false, &first), bytes = (int)run->size;
	MPI_Request *sends = run->requests + run->window;

	if (other < 0)
		return;
	for (int i = 0; i < run->window; i++)
		MPI_Irecv(run->recv, bytes, MPI_BYTE, other, first ? TAG_BACK : TAG_DATA,
			  MPI_COMM_WORLD, &run->requests[i]);
	for (int i = 0; i < run->window; i++)
		MPI_Isend(run->send, bytes, MPI_BYTE, other, first ? TAG_DATA : TAG_BACK,
			  MPI_COMM_WORLD, &sends[i]);
	MPI_Waitall(2 * run->window, run->requests, MPI_STATUSES_IGNORE);
}

static void latency(struct run *run)
{
	ping_pong(run, false);
}

static void multi_latency(struct run *run)
{
	ping_pong(run, true);
}

static void bandwidth(struct run *run)
{
	stream(run, false);
}

static void multi_bandwidth(struct run *run)
{
	stream(run, true);
}

static size_t check(struct run *run, size_t *first, void (*once)(struct run *), bool all_pairs,
		    bool answered)
{
	bool sends;
	int other = partner(run, all_pairs, &sends);

	if (other < 0)
		return 0;
	pattern_fill(run->send, run->size, run->at->rank, other);
	memset(run->recv, POISON, run->size);
	once(run);
	if (sends && !answered)
		return 0;
	return pattern_wrong(run->recv, run->size, other, run->at->rank, first);
}

static size_t check_latency(struct run *run, size_t *first)
{
	return check(run, first, latency, false, true);
}

static size_t check_multi_latency(struct run *run, size_t *first)
{
	return check(run, first, multi_latency, true, true);
}

static size_t check_bandwidth(struct run *run, size_t *first)
{
	return check(run, first, bandwidth, false, false);
}

static size_t check_multi_bandwidth(struct run *run, size_t *first)
{
	return check(run, first, multi_bandwidth, true, false);
}

static size_t check_both_ways(struct run *run, size_t *first)
{
	return check(run, first, both_ways, false, true);
}

static struct floor across(const struct run *run, bool all_pairs, uint64_t each)
{
	int pairs;

	placement_pairs(run->at, all_pairs, &pairs);
	return (struct floor){(uint64_t)pairs * each * run->size, (uint64_t)pairs * each};
}

static struct floor floor_latency(const struct run *run)
{
	return across(run, false, 2);
}

static struct floor floor_multi_latency(const struct run *run)
{
	return across(run, true, 2);
}

static struct floor floor_bandwidth(const struct run *run)
{
	return across(run, false, run->window);
}

static struct floor floor_multi_bandwidth(const struct run *run)
{
	return across(run, true, run->window);
}

static struct floor floor_both_ways(const struct run *run)
{
	return across(run, false, 2 * (uint64_t)run->window);
}

const struct test PAIR_TESTS[] = {
	{.name = "latency",
	 .shape = PAIRS,
	 .quantity = LATENCY,
	 .sized = true,
	 .ways = 2,
	 .once = latency,
	 .check = check_latency,
	 .floor = floor_latency},
	{.name = "multi_lat",
	 .shape = PAIRS,
	 .quantity = LATENCY,
	 .all_pairs = true,
	 .sized = true,
	 .ways = 2,
	 .once = multi_latency,
	 .check = check_multi_latency,
	 .floor = floor_multi_latency},
	{.name = "bw",
	 .shape = PAIRS,
	 .quantity = BANDWIDTH,
	 .windows = true,
	 .sized = true,
	 .ways = 1,
	 .once = bandwidth,
	 .check = check_bandwidth,
	 .floor = floor_bandwidth},
	{.name = "bibw",
	 .shape = PAIRS,
	 .quantity = BANDWIDTH,
	 .windows = true,
	 .sized = true,
	 .ways = 2,
	 .once = both_ways,
	 .check = check_both_ways,
	 .floor = floor_both_ways},
	{.name = "mbw_mr",
	 .shape = PAIRS,
	 .quantity = BANDWIDTH,
	 .all_pairs = true,
	 .windows = true,
	 .sized = true,
	 .ways = 1,
	 .once = multi_bandwidth,
	 .check = check_multi_bandwidth,
	 .floor = floor_multi_bandwidth},
	{},
};
