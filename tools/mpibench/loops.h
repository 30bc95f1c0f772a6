/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The methods, one file each. */
#ifndef MPIBENCH_LOOPS_H
#define MPIBENCH_LOOPS_H

#include "method.h"

extern const struct method OSU, IMB, SKAMPI;

double mean_of(const double *all, int number);
double largest_of(const double *all, int number);

#endif /* MPIBENCH_LOOPS_H */
