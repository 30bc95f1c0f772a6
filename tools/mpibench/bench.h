/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by all files of mpibench. A test is one MPI operation that can be run once and checked.
 * A method (method.h) decides how often it runs and which time counts.
 */
#ifndef MPIBENCH_BENCH_H
#define MPIBENCH_BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELEMENT sizeof(float) /* reductions add floats, as OSU's and IMB's do */

/* The node of each rank, which decides what crosses the link. */
struct placement {
	int rank, ranks;
	int nodes;
	int *node;			      /* [ranks]: number of the rank's node */
	int *on_node;			      /* [nodes]: how many ranks it has */
	char (*name)[MPI_MAX_PROCESSOR_NAME]; /* [nodes] */
};

/* One test at one size, on this rank. */
struct run {
	const struct placement *at;
	size_t size;		    /* bytes, as the test counts them */
	int window;		    /* messages in flight, streams only */
	int root;		    /* rooted collectives only */
	unsigned char *send, *recv; /* room for `size` times the ranks, each */
	MPI_Request *requests;	    /* room for two windows */
	int *counts;		    /* [ranks]: elements of each rank, reduce_scatter only */
	double *began;		    /* room for when each timed operation began, or NULL */
};

/* The minimum that crosses the link between nodes when a test runs once. */
struct floor {
	uint64_t bytes, messages;
};

enum shape {
	PAIRS,	    /* point to point: each rank of the first half with one of the second */
	COLLECTIVE, /* all ranks at once */
};

enum quantity { LATENCY, BANDWIDTH };

struct test {
	const char *name;
	enum shape shape;
	enum quantity quantity;
	bool all_pairs; /* PAIRS: not only the first one */
	bool windows;	/* PAIRS: streams of run.window messages */
	bool rooted;	/* checked with every rank as run.root, timed with 0 */
	bool sized;	/* has messages of a size */
	bool reduces;	/* sizes are whole ELEMENTs */
	int ways; /* messages or windows that one `once` moves, by which its time is divided */
	void (*once)(struct run *run);
	/* runs it once with marked data; returns the wrong bytes on this rank, and the place of the
	 * first */
	size_t (*check)(struct run *run, size_t *first);
	struct floor (*floor)(const struct run *run);
};

extern const struct test PAIR_TESTS[], ROOTED_TESTS[], SHARED_TESTS[],
	SPREAD_TESTS[]; /* ended by {} */

/* by name, or NULL; `number` counts from 0 through all of them */
const struct test *test_find(const char *name);
const struct test *test_at(int number);

#endif /* MPIBENCH_BENCH_H */
