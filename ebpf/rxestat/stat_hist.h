/* SPDX-License-Identifier: GPL-2.0-only */
/* A histogram in a table and in JSON. */
#ifndef STAT_HIST_H
#define STAT_HIST_H

#include <stdio.h>

#include "hist.h"
#include "json.h"

/* Octaves as funclatency(8) prints them, and the quantiles of the tail. */
void print_histogram(FILE *out, const struct hist *h);
/* count, sum, minimum, maximum, mean */
void put_sums(struct json *j, const struct hist *h);
/* quantiles and buckets */
void put_quantiles(struct json *j, const struct hist *h);

#endif /* STAT_HIST_H */
