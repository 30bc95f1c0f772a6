// SPDX-License-Identifier: GPL-2.0-only
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "msg.h"
#include "options.h"
#include "rxedump.h"

enum { OPT_BPF_STATS = 256 };

static const struct option_row table[] = {
#define OPTION(letter, name, argument, help) {letter, name, argument, help},
#include "option_table.h"
#undef OPTION
};
#define OPTIONS ((int)(sizeof(table) / sizeof(table[0])))

static void print_help(void)
{
	printf("Usage: rxedump [OPTION]... [COMMAND [ARGUMENT]...]\n\n"
	       "Each packet as rdma_rxe saw it, with what each stage took: until COMMAND ends,\n"
	       "or SIGINT comes.\n\n");
	options_print(table, OPTIONS);
	printf("\nExit status: that of COMMAND; without one 0. 1: failed while running,\n"
	       "2: bad option, 3: something is missing (root, driver, types, device).\n"
	       "Manual: rxedump(8)\n");
}

/* -1, or the status after an error */
static int parse_number(const char *value, __u32 max, __u32 *number, const char *what)
{
	return option_number(value, max, number) ? -1 : option_error(what, value);
}

static int parse_snap_length(struct config *config, const char *value)
{
	config->whole = !strcmp(value, "0");
	config->snap_length = DUMP_LARGEST;
	return config->whole ? -1
			     : parse_number(value, DUMP_LARGEST, &config->snap_length,
					    "--snapshot-length takes 0 to 65549, not");
}

static int parse_opcodes(struct config *config, char *value)
{
	static char kept[1024];
	const char *unknown;

	snprintf(kept, sizeof(kept), "%s", value);
	config->opcodes = kept;
	config->all_opcodes = false;
	unknown = option_opcodes(value, config->chosen);
	return unknown ? option_error("no such BTH opcode or class", unknown) : -1;
}

static int parse_option(struct config *config, int letter, char *value)
{
	switch (letter) {
	case 'w':
		config->output = value;
		return value[0] ? -1 : option_error("--write takes a file name, not", value);
	case 'd':
		config->device = value;
		return -1;
	case 'q':
		return parse_number(value, 0xffffff, &config->qpn,
				    "--qpn takes 1 to 16777215, not");
	case 'D':
		config->tx = !strcmp(value, "tx");
		config->rx = !strcmp(value, "rx");
		return config->tx || config->rx
			       ? -1
			       : option_error("--direction takes tx or rx, not", value);
	case 'p':
		return parse_opcodes(config, value);
	case 's':
		return parse_snap_length(config, value);
	case 'S':
		return parse_number(value, 1 << 24, &config->sample,
				    "--sample takes 1 to 16777216, not");
	case 'c':
		return parse_number(value, 0x7fffffff, &config->count,
				    "--count takes a positive number, not");
	case 'C':
		return parse_number(value, 1000000, &config->file_mb,
				    "--file-size takes 1 to 1000000 (million bytes), not");
	case 'W':
		return parse_number(value, 1000000, &config->files,
				    "--file-count takes 1 to 1000000, not");
	case 'B':
		return parse_number(value, 1 << 20, &config->buffer_kib,
				    "--buffer-size takes 1 to 1048576 (KiB), not");
	case 'H':
		return parse_number(value, 3600000, &config->patience_ms,
				    "--hold takes 1 to 3600000 (ms), not");
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
		return msg_error(EXIT_USAGE, NULL, NULL, "see rxedump --help");
	}
}

static int check(const struct config *config)
{
	bool to_file = config->output && strcmp(config->output, "-") != 0;

	if (config->file_mb && !to_file)
		return msg_error(EXIT_USAGE, NULL, "add --write FILE",
				 "--file-size is of files, and none is written");
	if (config->files && !config->file_mb)
		return msg_error(EXIT_USAGE, NULL, "add --file-size MB",
				 "--file-count counts files of a size, and there is none");
	if (config->output && !to_file && isatty(STDOUT_FILENO))
		return msg_error(EXIT_USAGE, NULL, "pipe it: rxedump -w - | wireshark -k -i -",
				 "pcapng is not for a terminal");
	return -1;
}

int config_parse(struct config *config, int argc, char **argv)
{
	int letter, status;

	memset(config, 0, sizeof(*config));
	config->tx = config->rx = config->all_opcodes = true;
	config->snap_length = DUMP_LARGEST;
	config->whole = true;
	config->sample = 1;
	config->buffer_kib = 8192;
	config->patience_ms = 1000;
	if (gethostname(config->node, sizeof(config->node) - 1))
		config->node[0] = '\0';

	while ((letter = options_next(table, OPTIONS, argc, argv)) != -1) {
		status = parse_option(config, letter, optarg);
		if (status >= 0)
			return status;
	}
	status = check(config);
	if (status >= 0)
		return status;
	config->command = optind < argc ? argv + optind : NULL;
	return -1;
}
