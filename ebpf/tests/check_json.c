// SPDX-License-Identifier: GPL-2.0-only
/* The JSON writer: commas, escapes, numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "json.h"

int main(void)
{
	static const char expected[] =
		"{\"s\":\"a\\\"\\\\\\u000a\\u001b\\u00ff\",\"n\":null,\"u\":18446744073709551615,"
		"\"d\":1.500,\"nan\":null,\"yes\":true,\"a\":[1,[],{\"k\":2},3],\"e\":{}}\n";
	char *text = NULL;
	size_t size = 0;
	struct json j = {.out = open_memstream(&text, &size)};

	json_open_object(&j, NULL);
	json_string(&j, "s", "a\"\\\n\033\377");
	json_string(&j, "n", NULL);
	json_u64(&j, "u", ~0ull);
	json_double(&j, "d", 1.5);
	json_double(&j, "nan", NAN);
	json_bool(&j, "yes", true);
	json_open_array(&j, "a");
	json_u64(&j, NULL, 1);
	json_open_array(&j, NULL);
	json_close_array(&j);
	json_open_object(&j, NULL);
	json_u64(&j, "k", 2);
	json_close_object(&j);
	json_u64(&j, NULL, 3);
	json_close_array(&j);
	json_open_object(&j, "e");
	json_close_object(&j);
	json_close_object(&j);
	json_end(&j);
	fclose(j.out);
	CHECK(!strcmp(text, expected), "got %s", text);
	free(text);
	return check_end("json");
}
