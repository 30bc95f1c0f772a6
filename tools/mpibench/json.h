/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef MPIBENCH_JSON_H
#define MPIBENCH_JSON_H

#include <stdio.h>

/* Quoted and escaped; bytes that are not ASCII become '?'. */
void json_string(FILE *out, const char *text);

#endif /* MPIBENCH_JSON_H */
