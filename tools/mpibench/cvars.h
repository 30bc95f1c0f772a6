/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef MPIBENCH_CVARS_H
#define MPIBENCH_CVARS_H

#include <stdio.h>

/* A JSON object of the MPI library's settings that affect the measurement: the algorithms of its
 * collectives, and whether waiting ranks yield the processor. */
void cvars_print(FILE *out);

#endif /* MPIBENCH_CVARS_H */
