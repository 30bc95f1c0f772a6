// SPDX-License-Identifier: GPL-2.0-or-later
#include "pattern.h"

#include <string.h>

/* a multiplicative hash: neighbours in offset, sender and receiver all differ */
static unsigned char byte_at(size_t offset, int from, int to)
{
	unsigned int mixed = (unsigned int)offset * 2654435761u + (unsigned int)from * 40503u +
			     (unsigned int)(to + 1) * 9973u;

	return (mixed ^ mixed >> 15) >> 3;
}

void pattern_fill(unsigned char *data, size_t size, int from, int to)
{
	for (size_t i = 0; i < size; i++)
		data[i] = byte_at(i, from, to);
}

size_t pattern_wrong(const unsigned char *data, size_t size, int from, int to, size_t *first)
{
	size_t wrong = 0;

	for (size_t i = 0; i < size; i++)
		if (data[i] != byte_at(i, from, to) && !wrong++)
			*first = i;
	return wrong;
}

static float number_at(size_t index, int rank)
{
	return (float)((index * 7 + (size_t)rank * 3) % 31);
}

void numbers_fill(unsigned char *data, size_t elements, int rank)
{
	for (size_t i = 0; i < elements; i++) {
		float number = number_at(i, rank);

		memcpy(data + i * sizeof(number), &number, sizeof(number));
	}
}

size_t numbers_wrong_sum(const unsigned char *data, size_t elements, size_t skip, int ranks,
			 size_t *first)
{
	size_t wrong = 0;

	for (size_t i = 0; i < elements; i++) {
		float found, sum = 0;

		for (int rank = 0; rank < ranks; rank++)
			sum += number_at(i + skip, rank);
		memcpy(&found, data + i * sizeof(found), sizeof(found));
		if (found != sum && !wrong++)
			*first = i * sizeof(found);
	}
	return wrong * sizeof(float);
}
