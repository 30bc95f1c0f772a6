// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "msg.h"
#include "version.h"

#define MAX_ROWS 64
#define MAX_PID	 0x3fffff

static void print_rows(const struct command_line *line)
{
	for (int i = 0; i < line->nrows; i++) {
		const struct option_row *row = &line->rows[i];
		bool has_letter = row->letter < 256;
		char left[40] = "";

		snprintf(left, sizeof(left), "%c%c%c --%s%s%s", has_letter ? '-' : ' ',
			 has_letter ? row->letter : ' ', has_letter ? ',' : ' ', row->name,
			 row->argument ? " " : "", row->argument ? row->argument : "");
		printf("  %-22s %s\n", left, row->help);
	}
}

static int print_help(const struct command_line *line)
{
	printf("Usage: %s [OPTION]... [COMMAND [ARGUMENT]...]\n\n%s\n\n", msg_program,
	       line->purpose);
	print_rows(line);
	printf("\nExit status: that of COMMAND; without one 0. 1: failed while running,\n"
	       "2: bad option, 3: something is missing (%s).\n"
	       "Manual: %s(8)\n",
	       line->missing, msg_program);
	return 0;
}

static int print_version(void)
{
	printf("%s (rocelab) %s\n", msg_program, ROCELAB_VERSION);
	return 0;
}

static int next_option(const struct command_line *line, int argc, char **argv)
{
	struct option longs[MAX_ROWS + 1] = {};
	char shorts[2 * MAX_ROWS + 2] = "+", *s = shorts + 1;

	for (int i = 0; i < line->nrows && i < MAX_ROWS; i++) {
		const struct option_row *row = &line->rows[i];

		longs[i].name = row->name;
		longs[i].has_arg = row->argument ? required_argument : no_argument;
		longs[i].val = row->letter;
		if (row->letter < 256) {
			*s++ = row->letter;
			if (row->argument)
				*s++ = ':';
		}
	}
	*s = '\0';
	return getopt_long(argc, argv, shorts, longs, NULL);
}

static int take(const struct command_line *line, const struct option_part *parts, int letter)
{
	int status = OPTION_OTHER;

	if (letter == 'h')
		return print_help(line);
	if (letter == 'V')
		return print_version();
	for (; parts->take && status == OPTION_OTHER; parts++)
		status = parts->take(parts->into, letter, optarg);
	if (status != OPTION_OTHER)
		return status;
	/* getopt has printed what is wrong */
	fprintf(stderr, "  what to do: see %s --help\n", msg_program);
	return EXIT_USAGE;
}

int options_parse(const struct command_line *line, const struct option_part *parts, int argc,
		  char **argv, char ***command)
{
	int letter, status;

	while ((letter = next_option(line, argc, argv)) != -1) {
		status = take(line, parts, letter);
		if (status != OPTION_TAKEN)
			return status;
	}
	*command = optind < argc ? argv + optind : NULL;
	return -1;
}

int option_error(const char *what, const char *value)
{
	char action[64];

	snprintf(action, sizeof(action), "see %s --help", msg_program);
	return msg_error(EXIT_USAGE, NULL, action, "%s: '%s'", what, value);
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

int option_take_number(const char *text, __u32 max, __u32 *number, const char *what)
{
	return option_number(text, max, number) ? OPTION_TAKEN : option_error(what, text);
}

int option_take_pids(char *list, __u32 *pids, unsigned int *n, unsigned int room)
{
	char what[64], *save = NULL;

	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (*n == room) {
			snprintf(what, sizeof(what), "--pid takes %u at most, not also", room);
			return option_error(what, word);
		}
		if (!option_number(word, MAX_PID, &pids[(*n)++]))
			return option_error("--pid takes process IDs, not", word);
	}
	return *n ? OPTION_TAKEN : option_error("--pid takes process IDs, not", list);
}
