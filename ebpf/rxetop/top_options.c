// SPDX-License-Identifier: GPL-2.0-only
#include "top_options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "msg.h"
#include "sample.h"
#include "stage.h"

#define INTERVAL_MS 2000

static const struct option_row rows[] = {
#define OPTION(letter, name, argument, help) {letter, name, argument, help},
#include "top_option_table.h"
#undef OPTION
};

static const struct command_line line = {
	.purpose =
		"The queue pairs of rdma_rxe, the busiest first: packets, latencies, losses, and\n"
		"whose they are. Press h for its keys.",
	.missing = "root, driver, types, device, terminal",
	.rows = rows,
	.nrows = sizeof(rows) / sizeof(rows[0]),
};

static int take_sample(struct config *config, const char *value)
{
	if (option_number(value, SAMPLE_MAX, &config->one_of) &&
	    !(config->one_of & (config->one_of - 1)))
		return OPTION_TAKEN;
	return option_error("--sample takes a power of 2 up to 4096, not", value);
}

/* "tx.icrc"; xmit is not among them, because it needs a program for every packet of the host */
static int take_stage(struct config *config, const char *value)
{
	for (int i = 0; i < stage_choices(); i++) {
		struct stage_choice choice = stage_choice_at(i);
		char name[STAGE_NAME];

		stage_choice_name(choice, name);
		if (!strcmp(name, value)) {
			config->stage = choice;
			return OPTION_TAKEN;
		}
	}
	return option_error("--stage takes tx.wqe to tx.icrc or rx.parse to rx.reply, not", value);
}

static int config_take(void *into, int letter, char *value)
{
	struct config *config = into;
	struct selection *selection = &config->selection;

	switch (letter) {
	case 'b':
		config->batch = true;
		return OPTION_TAKEN;
	case 'j':
		config->json = true;
		return OPTION_TAKEN;
	case 'n':
		return option_take_number(value, 0x7fffffff, &config->iterations,
					  "--iterations takes a positive number, not");
	case 'I':
		if (option_number(value, 3600000, &config->interval_ms) &&
		    config->interval_ms >= 100)
			return OPTION_TAKEN;
		return option_error("--interval takes 100 to 3600000 ms, not", value);
	case 'd':
		config->device = value;
		return OPTION_TAKEN;
	case 'f':
		snprintf(selection->filter, sizeof(selection->filter), "%s", value);
		return OPTION_TAKEN;
	case 'g':
		return group_key_find(value, &selection->group)
			       ? OPTION_TAKEN
			       : option_error("--group takes " GROUP_KEYS ", not", value);
	case 's':
		return sort_key_find(value, &selection->sort)
			       ? OPTION_TAKEN
			       : option_error("--sort takes " SORT_KEYS ", not", value);
	case 'T':
		return take_stage(config, value);
	case 'w':
		return view_find(value, &config->view)
			       ? OPTION_TAKEN
			       : option_error("--view takes latency, peer, stage or losses, not",
					      value);
	case 'i':
		selection->idle = true;
		return OPTION_TAKEN;
	case 'S':
		return take_sample(config, value);
	default:
		return OPTION_OTHER;
	}
}

static int check(struct config *config)
{
	int status = session_options_check(&config->session);

	if (status == -1)
		status = session_options_refuse(&config->session, config->iterations,
						"--iterations");
	if (status == -1)
		status =
			session_options_refuse(&config->session, config->interval_ms, "--interval");
	if (status != -1)
		return status;
	config->interval_ms = config->interval_ms ?: INTERVAL_MS;
	if (config->json || config->session.control)
		config->batch = true;
	if (config->batch)
		return -1;
	if (config->session.command)
		return msg_error(EXIT_USAGE, "its output would spoil the screen",
				 "add --batch or --json", "a command cannot run on the screen");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return msg_error(EXIT_MISSING, "it runs in a pipe or without a terminal",
				 "add --batch or --json", "input or output is not a terminal");
	return -1;
}

int config_parse(struct config *config, int argc, char **argv)
{
	const struct option_part parts[] = {
		{config_take, config},
		{place_options_take, &config->places},
		{session_options_take, &config->session},
		{},
	};
	int status;

	memset(config, 0, sizeof(*config));
	config->one_of = 1;
	config->stage = (struct stage_choice){.dir = DIR_TX, .number = RXE_TX_ICRC};
	session_options_init(&config->session);
	status = options_parse(&line, parts, argc, argv, &config->session.command);
	return status == -1 ? check(config) : status;
}
