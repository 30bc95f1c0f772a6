/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef MPIBENCH_CVARS_H
#define MPIBENCH_CVARS_H

#include <stdio.h>

/* A JSON object of the MPI library's settings that change what is measured: which algorithms its
 * collectives take, and whether its ranks give the processor away while they wait. */
void cvars_print(FILE *out);

#endif /* MPIBENCH_CVARS_H */
