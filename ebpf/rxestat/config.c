// SPDX-License-Identifier: GPL-2.0-only
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "msg.h"
#include "options.h"

enum { OPT_BPF_STATS = 256 };

static const struct option_row table[] = {
#define OPTION(letter, name, argument, help) {letter, name, argument, help},
#include "option_table.h"
#undef OPTION
};
#define OPTIONS ((int)(sizeof(table) / sizeof(table[0])))

static void print_help(void)
{
	printf("Usage: rxestat [OPTION]... [COMMAND [ARGUMENT]...]\n\n"
	       "Where the time of each packet goes inside rdma_rxe: until COMMAND ends, or\n"
	       "SIGINT comes.\n\n");
	options_print(table, OPTIONS);
	printf("\nExit status: that of COMMAND; without one 0. 1: failed while running,\n"
	       "2: bad option, 3: something is missing (root, driver, types, device).\n"
	       "Manual: rxestat(8)\n");
}

static int parse_option(struct config *config, int letter, char *value)
{
	const char *name;

	switch (letter) {
	case 'd':
		config->device = value;
		return -1;
	case 'q':
		return option_number(value, 0xffffff, &config->qpn)
			       ? -1
			       : option_error("--qpn takes 1 to 16777215, not", value);
	case 'D':
		config->tx = !strcmp(value, "tx");
		config->rx = !strcmp(value, "rx");
		return config->tx || config->rx
			       ? -1
			       : option_error("--direction takes tx or rx, not", value);
	case 'p':
		config->all_opcodes = false;
		name = option_opcodes(value, config->chosen);
		return name ? option_error("no such BTH opcode or class", name) : -1;
	case 'I':
		return option_number(value, 86400000, &config->interval_ms)
			       ? -1
			       : option_error("--interval takes 1 to 86400000 (ms), not", value);
	case 'c':
		return option_number(value, 0x7fffffff, &config->count)
			       ? -1
			       : option_error("--count takes a positive number, not", value);
	case 'j':
		config->json = true;
		return -1;
	case 'o':
		config->output = value;
		return value[0] ? -1 : option_error("--output takes a file name, not", value);
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
		return option_version();
	default: /* getopt has said what is wrong */
		return msg_error(EXIT_USAGE, NULL, NULL, "see rxestat --help");
	}
}

int config_parse(struct config *config, int argc, char **argv)
{
	int letter, status;

	memset(config, 0, sizeof(*config));
	config->tx = config->rx = config->all_opcodes = true;
	if (gethostname(config->node, sizeof(config->node) - 1))
		config->node[0] = '\0';

	while ((letter = options_next(table, OPTIONS, argc, argv)) != -1) {
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
