// SPDX-License-Identifier: GPL-2.0-only
#include "dump_options.h"

#include <string.h>
#include <unistd.h>

#include "msg.h"
#include "rxedump.h"

static const struct option_row rows[] = {
#define OPTION(letter, name, argument, help) {letter, name, argument, help},
#include "dump_option_table.h"
#undef OPTION
};

static const struct command_line line = {
	.purpose =
		"Each packet as rdma_rxe saw it, with what each stage took, until COMMAND ends or\n"
		"SIGINT arrives.",
	.missing = "capabilities, driver, types, device",
	.rows = rows,
	.nrows = sizeof(rows) / sizeof(rows[0]),
};

static int take_snap_length(struct config *config, const char *value)
{
	config->whole = !strcmp(value, "0");
	config->snap_length = DUMP_MAX_FRAME;
	return config->whole ? OPTION_TAKEN
			     : option_take_number(value, DUMP_MAX_FRAME, &config->snap_length,
						  "--snapshot-length takes 0 to 65549, not");
}

static int check_follow(struct config *config)
{
	if (!config->follow.qpn)
		return -1;
	if (config->filter.qpn && config->filter.qpn != config->follow.qpn)
		return msg_error(EXIT_USAGE, NULL, "leave out --qpn",
				 "--follow and --qpn name different queue pairs");
	config->filter.qpn = config->follow.qpn;
	return -1;
}

static int take(void *into, int letter, char *value)
{
	struct config *config = into;

	switch (letter) {
	case 'w':
		config->output = value;
		return value[0] ? OPTION_TAKEN
				: option_error("--write takes a file name, not", value);
	case 'F':
		return follow_parse(&config->follow, value)
			       ? OPTION_TAKEN
			       : option_error("--follow takes QPN:PSN or QPN:#NUMBER, not", value);
	case 's':
		return take_snap_length(config, value);
	case 'S':
		return option_take_number(value, 1 << 24, &config->sample,
					  "--sample takes 1 to 16777216, not");
	case 'c':
		return option_take_number(value, 0x7fffffff, &config->count,
					  "--count takes a positive number, not");
	case 'C':
		return option_take_number(value, 1000000, &config->file_mb,
					  "--file-size takes 1 to 1000000 (million bytes), not");
	case 'W':
		return option_take_number(value, 1000000, &config->files,
					  "--file-count takes 1 to 1000000, not");
	case 'B':
		return option_take_number(value, 1 << 20, &config->buffer_kib,
					  "--buffer-size takes 1 to 1048576 (KiB), not");
	case 'H':
		return option_take_number(value, 3600000, &config->hold_ms,
					  "--hold takes 1 to 3600000 (ms), not");
	default:
		return OPTION_OTHER;
	}
}

static int check(const struct config *config)
{
	bool to_file = config->output && strcmp(config->output, "-") != 0;

	int status = session_options_check(&config->session);

	if (status == -1)
		status = session_options_refuse(&config->session, config->output,
						"--write; `start FILE` names the file");
	if (status == -1)
		status = session_options_refuse(&config->session, config->count, "--count");
	if (status != -1)
		return status;
	if (config->file_mb && !to_file)
		return msg_error(EXIT_USAGE, NULL, "add --write FILE", "--file-size needs --write");
	if (config->files && !config->file_mb)
		return msg_error(EXIT_USAGE, NULL, "add --file-size MB",
				 "--file-count needs --file-size");
	if (config->output && !to_file && isatty(STDOUT_FILENO))
		return msg_error(EXIT_USAGE, NULL, "pipe it: rxedump -w - | wireshark -k -i -",
				 "pcapng is not for a terminal");
	return -1;
}

int config_parse(struct config *config, int argc, char **argv)
{
	const struct option_part parts[] = {
		{packet_filter_take, &config->filter},
		{session_options_take, &config->session},
		{take, config},
		{},
	};
	int status;

	memset(config, 0, sizeof(*config));
	packet_filter_init(&config->filter);
	session_options_init(&config->session);
	config->snap_length = DUMP_MAX_FRAME;
	config->whole = true;
	config->sample = 1;
	config->buffer_kib = 8192;
	config->hold_ms = 1000;
	status = options_parse(&line, parts, argc, argv, &config->session.command);
	status = status == -1 ? check(config) : status;
	return status == -1 ? check_follow(config) : status;
}
