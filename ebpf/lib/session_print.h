/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of a report that is the same in every probe. */
#ifndef ROCELAB_SESSION_PRINT_H
#define ROCELAB_SESSION_PRINT_H

#include <stdio.h>

#include "json.h"
#include "session.h"

/* schema, node, kernel, driver */
void session_json_place(struct json *j, const struct session *s, const char *schema);
/* accelerator, start_wall_ns, start_ns, duration_ns */
void session_json_time(struct json *j, const struct session *s);
/* programs */
void session_json_programs(struct json *j, const struct session *s);
/* Lines of a table, if the kernel timed the programs. */
void session_print_programs(FILE *out, const struct session *s);

#endif /* ROCELAB_SESSION_PRINT_H */
