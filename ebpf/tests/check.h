/* SPDX-License-Identifier: GPL-2.0-only */
/* A minimal test harness: count, print what failed and where, continue. */
#ifndef ROCELAB_CHECK_H
#define ROCELAB_CHECK_H

#include <stdio.h>

static int check_total, check_failed;

#define CHECK(condition, ...)                                                           \
	do {                                                                            \
		check_total++;                                                          \
		if (!(condition)) {                                                     \
			check_failed++;                                                 \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
			fprintf(stderr, __VA_ARGS__);                                   \
			fputc('\n', stderr);                                            \
		}                                                                       \
	} while (0)

static inline int check_end(const char *name)
{
	printf("%s: %d checks, %d failed\n", name, check_total, check_failed);
	return check_failed != 0;
}

#endif /* ROCELAB_CHECK_H */
