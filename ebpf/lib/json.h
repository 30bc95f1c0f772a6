/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes JSON as a stream, so that a probe needs no library on a test host. The writer adds commas
 * and escapes strings; the caller closes what it opens. Errors stay in the FILE (ferror).
 */
#ifndef ROCELAB_JSON_H
#define ROCELAB_JSON_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

struct json {
	FILE *out;
	bool comma; /* not the first at this level */
};

/* key is NULL inside arrays and at the top */
void json_open_object(struct json *j, const char *key);
void json_close_object(struct json *j);
void json_open_array(struct json *j, const char *key);
void json_close_array(struct json *j);
void json_string(struct json *j, const char *key, const char *value); /* NULL: null */
void json_u64(struct json *j, const char *key, __u64 value);
void json_double(struct json *j, const char *key, double value); /* not finite: null */
void json_bool(struct json *j, const char *key, bool value);
/* end of the document: a newline */
void json_end(struct json *j);

#endif /* ROCELAB_JSON_H */
