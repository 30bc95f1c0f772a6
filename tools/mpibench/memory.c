// SPDX-License-Identifier: GPL-2.0-or-later
#include "memory.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void lacking(size_t size)
{
	fprintf(stderr,
		"mpibench: cannot allocate %zu bytes\n"
		"  likely cause: the buffers hold the largest size once per rank\n"
		"  what to do: use smaller --sizes or fewer ranks\n",
		size);
	MPI_Abort(MPI_COMM_WORLD, 3);
	exit(3);
}

void *memory_get(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory)
		lacking(count * size);
	return memory;
}

unsigned char *memory_get_pages(size_t size)
{
	void *memory;

	if (posix_memalign(&memory, sysconf(_SC_PAGESIZE), size ? size : 1))
		lacking(size);
	memset(memory, 0, size);
	return memory;
}
