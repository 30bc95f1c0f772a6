// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bth.h"
#include "msg.h"
#include "version.h"

#define MAX_ROWS 64

void options_print(const struct option_row *table, int rows)
{
	for (int i = 0; i < rows; i++) {
		bool has_letter = table[i].letter < 256;
		char left[40] = "";

		snprintf(left, sizeof(left), "%c%c%c --%s%s%s", has_letter ? '-' : ' ',
			 has_letter ? table[i].letter : ' ', has_letter ? ',' : ' ', table[i].name,
			 table[i].argument ? " " : "", table[i].argument ? table[i].argument : "");
		printf("  %-22s %s\n", left, table[i].help);
	}
}

int options_next(const struct option_row *table, int rows, int argc, char **argv)
{
	struct option longs[MAX_ROWS + 1] = {};
	char shorts[2 * MAX_ROWS + 2] = "+", *s = shorts + 1;

	for (int i = 0; i < rows && i < MAX_ROWS; i++) {
		longs[i].name = table[i].name;
		longs[i].has_arg = table[i].argument ? required_argument : no_argument;
		longs[i].val = table[i].letter;
		if (table[i].letter < 256) {
			*s++ = table[i].letter;
			if (table[i].argument)
				*s++ = ':';
		}
	}
	*s = '\0';
	return getopt_long(argc, argv, shorts, longs, NULL);
}

int option_error(const char *what, const char *value)
{
	char action[64];

	snprintf(action, sizeof(action), "see %s --help", msg_program);
	return msg_error(EXIT_USAGE, NULL, action, "%s: '%s'", what, value);
}

int option_version(void)
{
	printf("%s (rocelab) %s\n", msg_program, ROCELAB_VERSION);
	return 0;
}

bool option_number(const char *text, __u32 max, __u32 *number)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoul(text, &end, 0);
	if (errno || *end || !value || value > max)
		return false;
	*number = value;
	return true;
}

const char *option_opcodes(char *names, bool chosen[256])
{
	char *save = NULL;

	for (char *name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		if (!bth_choose(name, chosen))
			return name;
	}
	return NULL;
}
