/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data in which each byte follows from sender, receiver and offset, so that a check finds errors.
 */
#ifndef MPIBENCH_PATTERN_H
#define MPIBENCH_PATTERN_H

#include <stddef.h>

#define POISON 0xa5 /* initial content of receive buffers */

/* `from` and `to`: ranks; a block that goes to all has to = -1 */
void pattern_fill(unsigned char *data, size_t size, int from, int to);
/* the number of wrong bytes; *first is the offset of the first, set only if there is one */
size_t pattern_wrong(const unsigned char *data, size_t size, int from, int to, size_t *first);

/* whole numbers, so small that float adds them exactly in any order */
void numbers_fill(unsigned char *data, size_t elements, int rank);
/* `skip`: elements of the whole vector before data[0] */
size_t numbers_wrong_sum(const unsigned char *data, size_t elements, size_t skip, int ranks,
			 size_t *first);

#endif /* MPIBENCH_PATTERN_H */
