// SPDX-License-Identifier: GPL-2.0-only
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "msg.h"
#include "options.h"

#define MIN_INTERVAL_MS 10

enum { OPT_BPF_STATS = 256 };

static const struct option_row table[] = {
#define OPTION(letter, name, argument, help) {letter, name, argument, help},
#include "option_table.h"
#undef OPTION
};
#define OPTIONS ((int)(sizeof(table) / sizeof(table[0])))

static void print_help(void)
{
	printf("Usage: rxecpu [OPTION]... [COMMAND [ARGUMENT]...]\n\n"
	       "What the CPUs do, and for whom: benchmark, rdma_rxe, network stack, others;\n"
	       "until COMMAND ends, or SIGINT comes. COMMAND is the benchmark.\n\n");
	options_print(table, OPTIONS);
	printf("\nExit status: that of COMMAND; without one 0. 1: failed while running,\n"
	       "2: bad option, 3: something is missing (root, types, events, device).\n"
	       "Manual: rxecpu(8)\n");
}

static int parse_pids(struct config *config, char *list)
{
	char *save = NULL;

	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (config->npids == MAX_PIDS)
			return option_error("--pid takes 64 at most, not also", word);
		if (!option_number(word, 0x3fffff, &config->pids[config->npids++]))
			return option_error("--pid takes process IDs, not", word);
	}
	return -1;
}

/* the kernel keeps the first 15 bytes of a name */
static int parse_comms(struct config *config, char *list)
{
	char *save = NULL;

	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (config->ncomms == MAX_COMMS)
			return option_error("--comm takes 8 at most, not also", word);
		strncpy(config->comms[config->ncomms++], word, COMM_BYTES - 1);
	}
	return config->ncomms ? -1 : option_error("--comm takes names, not", list);
}

static int parse_option(struct config *config, int letter, char *value)
{
	switch (letter) {
	case 'd':
		config->device = value;
		return -1;
	case 'p':
		return parse_pids(config, value);
	case 'C':
		return parse_comms(config, value);
	case 'G':
		config->cgroup = value;
		return -1;
	case 'A':
		config->per_cpu = true;
		return -1;
	case 'I':
		return option_number(value, 86400000, &config->interval_ms) &&
				       config->interval_ms >= MIN_INTERVAL_MS
			       ? -1
			       : option_error("--interval takes 10 to 86400000 (ms), not", value);
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
		return msg_error(EXIT_USAGE, NULL, NULL, "see rxecpu --help");
	}
}

int config_parse(struct config *config, int argc, char **argv)
{
	int letter, status;

	memset(config, 0, sizeof(*config));
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
