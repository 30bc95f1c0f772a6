// SPDX-License-Identifier: GPL-2.0-only
#include "cpu_options.h"

#include <string.h>

#define MIN_INTERVAL_MS 10

static const struct option_row rows[] = {
#define OPTION(letter, name, argument, help) {letter, name, argument, help},
#include "cpu_option_table.h"
#undef OPTION
};

static const struct command_line line = {
	.purpose =
		"What the CPUs do, and for whom: benchmark, rdma_rxe, network stack, others; until\n"
		"COMMAND, which is the benchmark, ends or SIGINT arrives.",
	.missing = "capabilities, types, events, device",
	.rows = rows,
	.nrows = sizeof(rows) / sizeof(rows[0]),
};

/* the kernel keeps the first 15 bytes of a name */
static int take_comms(struct config *config, char *list)
{
	char *save = NULL;

	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (config->ncomms == MAX_COMMS)
			return option_error("--comm takes 64 at most, not also", word);
		strncpy(config->comms[config->ncomms++], word, COMM_BYTES - 1);
	}
	return config->ncomms ? OPTION_TAKEN : option_error("--comm takes names, not", list);
}

static int take(void *into, int letter, char *value)
{
	struct config *config = into;

	switch (letter) {
	case 'd':
		config->device = value;
		return OPTION_TAKEN;
	case 'p':
		return option_take_pids(value, config->pids, &config->npids, MAX_PIDS);
	case 'C':
		return take_comms(config, value);
	case 'G':
		config->cgroup = value;
		return OPTION_TAKEN;
	case OPT_STACKS:
		config->stacks = value;
		return value[0] ? OPTION_TAKEN
				: option_error("--stacks takes a file name, not", value);
	case 'A':
		config->per_cpu = true;
		return OPTION_TAKEN;
	default:
		return OPTION_OTHER;
	}
}

int config_parse(struct config *config, int argc, char **argv)
{
	const struct option_part parts[] = {
		{report_options_take, &config->report},
		{session_options_take, &config->session},
		{take, config},
		{},
	};
	int status;

	memset(config, 0, sizeof(*config));
	config->report.least_ms = MIN_INTERVAL_MS;
	session_options_init(&config->session);
	status = options_parse(&line, parts, argc, argv, &config->session.command);
	status = status == -1 ? report_options_check(&config->report) : status;
	if (status == -1)
		status = session_options_check(&config->session);
	if (status == -1)
		status = session_options_refuse(&config->session, config->report.count, "--count");
	return status == -1 ? session_options_refuse(&config->session, config->stacks,
						     "--stacks; `start FILE` names the file")
			    : status;
}
