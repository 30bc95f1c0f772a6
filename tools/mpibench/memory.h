/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef MPIBENCH_MEMORY_H
#define MPIBENCH_MEMORY_H

#include <stddef.h>

/* zeroed memory, never NULL: without memory the whole job ends with a message */
void *memory_get(size_t count, size_t size);
/* the same, page-aligned as in every suite; free(3) it */
unsigned char *memory_get_pages(size_t size);

#endif /* MPIBENCH_MEMORY_H */
