// SPDX-License-Identifier: GPL-2.0-only
#include "stat_options.h"

#include <string.h>

#include "event_counter.h"
#include "msg.h"

static const struct option_row rows[] = {
#define OPTION(letter, name, argument, help) {letter, name, argument, help},
#include "stat_option_table.h"
#undef OPTION
};

static const struct command_line line = {
	.purpose = "Where the time of each packet goes inside rdma_rxe, until COMMAND ends or\n"
		   "SIGINT arrives.",
	.missing = "capabilities, driver, types, device",
	.rows = rows,
	.nrows = sizeof(rows) / sizeof(rows[0]),
};

static int config_take(void *into, int letter, char *value)
{
	struct config *config = into;

	switch (letter) {
	case 'x':
		config->xmit = true;
		return OPTION_TAKEN;
	case OPT_OPENMETRICS:
		config->openmetrics = value;
		return OPTION_TAKEN;
	case 'w':
		config->work_requests = true;
		return OPTION_TAKEN;
	case 'H':
		config->histograms = true;
		return OPTION_TAKEN;
	case 'e':
		config->event = value;
		return event_is_known(value)
			       ? OPTION_TAKEN
			       : option_error("--event takes " EVENT_NAMES ", not", value);
	case 'g':
		config->by = !strcmp(value, "cgroup")  ? OWNER_BY_CGROUP
			     : !strcmp(value, "netns") ? OWNER_BY_NETNS
						       : OWNER_BY_NONE;
		return config->by ? OPTION_TAKEN
				  : option_error("--group takes cgroup or netns, not", value);
	case 'S':
		if (option_number(value, SAMPLE_MAX, &config->one_of) &&
		    !(config->one_of & (config->one_of - 1)))
			return OPTION_TAKEN;
		return option_error("--sample takes a power of 2 up to 4096, not", value);
	default:
		return OPTION_OTHER;
	}
}

int config_parse(struct config *config, int argc, char **argv)
{
	const struct option_part parts[] = {
		{config_take, config},
		{packet_filter_take, &config->filter},
		{report_options_take, &config->report},
		{session_options_take, &config->session},
		{},
	};
	int status;

	memset(config, 0, sizeof(*config));
	config->one_of = 1;
	config->event = EVENT_CYCLES;
	packet_filter_init(&config->filter);
	session_options_init(&config->session);
	status = options_parse(&line, parts, argc, argv, &config->session.command);
	if (status != -1)
		return status;
	if (config->openmetrics && config->report.interval_ms)
		return msg_error(EXIT_USAGE, NULL, "leave out one of them",
				 "--openmetrics counts from the start, --interval does not");
	status = report_options_check(&config->report);
	if (status == -1)
		status = session_options_check(&config->session);
	if (status == -1)
		status = session_options_refuse(&config->session, config->report.interval_ms,
						"--interval");
	if (status == -1)
		status = session_options_refuse(&config->session, config->openmetrics,
						"--openmetrics");
	return status;
}
