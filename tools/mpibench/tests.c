// SPDX-License-Identifier: GPL-2.0-or-later
/* The tests by name and number. */
#include "bench.h"

#include <string.h>

static const struct test *const TABLES[] = {PAIR_TESTS, ROOTED_TESTS, SHARED_TESTS, SPREAD_TESTS};

const struct test *test_at(int number)
{
	for (size_t i = 0; i < sizeof(TABLES) / sizeof(*TABLES); i++)
		for (const struct test *t = TABLES[i]; t->name; t++)
			if (!number--)
				return t;
	return NULL;
}

const struct test *test_find(const char *name)
{
	const struct test *t;

	for (int i = 0; (t = test_at(i)); i++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}
