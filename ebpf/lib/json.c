// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "json.h"

#include <inttypes.h>
#include <math.h>

static void print_quoted(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f) /* names from the kernel need not be UTF-8 */
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void begin(struct json *j, const char *key)
{
	if (j->comma)
		fputc(',', j->out);
	j->comma = true;
	if (key) {
		print_quoted(j->out, key);
		fputc(':', j->out);
	}
}

static void open_level(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->out);
	j->comma = false;
}

static void close_level(struct json *j, char bracket)
{
	fputc(bracket, j->out);
	j->comma = true;
}

void json_open_object(struct json *j, const char *key)
{
	open_level(j, key, '{');
}

void json_close_object(struct json *j)
{
	close_level(j, '}');
}

void json_open_array(struct json *j, const char *key)
{
	open_level(j, key, '[');
}

void json_close_array(struct json *j)
{
	close_level(j, ']');
}

void json_string(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	if (value)
		print_quoted(j->out, value);
	else
		fputs("null", j->out);
}

void json_u64(struct json *j, const char *key, __u64 value)
{
	begin(j, key);
	fprintf(j->out, "%" PRIu64, (uint64_t)value);
}

void json_double(struct json *j, const char *key, double value)
{
	begin(j, key);
	if (isfinite(value))
		fprintf(j->out, "%.3f", value);
	else
		fputs("null", j->out);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_end(struct json *j)
{
	fputc('\n', j->out);
	j->comma = false;
}
