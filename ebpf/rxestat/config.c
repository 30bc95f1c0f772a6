// SPDX-License-Identifier: GPL-2.0-only
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bth.h"
#include "msg.h"

#ifndef ROCELAB_VERSION
#define ROCELAB_VERSION "unknown"
#endif

enum { OPT_BPF_STATS = 256 };

static const struct {
	int letter;
	const char *name, *argument, *help;
} table[] = {
#define OPTION(letter, name, argument, help) {letter, name, argument, help},
#include "options.h"
#undef OPTION
};
#define OPTIONS ((int)(sizeof(table) / sizeof(table[0])))

static void print_help(void)
{
	printf("Usage: rxestat [OPTION]... [COMMAND [ARGUMENT]...]\n\n"
	       "Where the time of each packet goes inside rdma_rxe: until COMMAND ends, or\n"
	       "SIGINT comes.\n\n");
	for (int i = 0; i < OPTIONS; i++) {
		char left[40] = "";

		snprintf(left, sizeof(left), "%c%c%c --%s%s%s", table[i].letter < 256 ? '-' : ' ',
			 table[i].letter < 256 ? table[i].letter : ' ',
			 table[i].letter < 256 ? ',' : ' ', table[i].name,
			 table[i].argument ? " " : "", table[i].argument ? table[i].argument : "");
		printf("  %-22s %s\n", left, table[i].help);
	}
	printf("\nExit status: that of COMMAND; without one 0. 1: failed while running,\n"
	       "2: bad option, 3: something is missing (root, driver, types, device).\n"
	       "Manual: rxestat(8)\n");
}

static int usage(const char *what, const char *value)
{
	return msg_error(EXIT_USAGE, NULL, "see rxestat --help", "%s: '%s'", what, value);
}

static bool parse_number(const char *text, unsigned long max, __u32 *number)
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

static const char *unknown_opcode(struct config *config, char *names)
{
	char *save = NULL;

	config->all_opcodes = false;
	for (char *name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		if (!bth_choose(name, config->chosen))
			return name;
	}
	return NULL;
}

static int parse_option(struct config *config, int letter, char *value)
{
	const char *name;

	switch (letter) {
	case 'd':
		config->device = value;
		return -1;
	case 'q':
		return parse_number(value, 0xffffff, &config->qpn)
			       ? -1
			       : usage("--qpn takes 1 to 16777215, not", value);
	case 'D':
		config->tx = !strcmp(value, "tx");
		config->rx = !strcmp(value, "rx");
		return config->tx || config->rx ? -1
						: usage("--direction takes tx or rx, not", value);
	case 'p':
		name = unknown_opcode(config, value);
		return name ? usage("no such BTH opcode or class", name) : -1;
	case 'I':
		return parse_number(value, 86400000, &config->interval_ms)
			       ? -1
			       : usage("--interval takes 1 to 86400000 (ms), not", value);
	case 'c':
		return parse_number(value, 0x7fffffff, &config->count)
			       ? -1
			       : usage("--count takes a positive number, not", value);
	case 'j':
		config->json = true;
		return -1;
	case 'o':
		config->output = value;
		return value[0] ? -1 : usage("--output takes a file name, not", value);
	case 'n':
		snprintf(config->node, sizeof(config->node), "%s", value);
		return -1;
	case OPT_BPF_STATS:
		config->bpf_stats = true;
		return -1;
	case 'h':
		print_help();
		return 0;
	case 'V':
		printf("rxestat (rocelab) %s\n", ROCELAB_VERSION);
		return 0;
	default: /* getopt has said what is wrong */
		return msg_error(EXIT_USAGE, NULL, NULL, "see rxestat --help");
	}
}

int config_parse(struct config *config, int argc, char **argv)
{
	struct option longs[OPTIONS + 1] = {};
	char shorts[2 * OPTIONS + 2] = "+", *s = shorts + 1;
	int letter, status;

	for (int i = 0; i < OPTIONS; i++) {
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

	memset(config, 0, sizeof(*config));
	config->tx = config->rx = config->all_opcodes = true;
	if (gethostname(config->node, sizeof(config->node) - 1))
		config->node[0] = '\0';

	while ((letter = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		status = parse_option(config, letter, optarg);
		if (status >= 0)
			return status;
	}
	if (config->count && !config->interval_ms)
		return msg_error(EXIT_USAGE, NULL, "add --interval MS",
				 "--count counts intervals, and there is none");
	config->command = optind < argc ? argv + optind : NULL;
	return -1;
}
