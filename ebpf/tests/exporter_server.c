// SPDX-License-Identifier: GPL-2.0-only
/* The exporter alone, with one metric, for tests/unit/ebpf/test_exporter.py. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "exporter.h"

static int print(void *context, FILE *out, bool openmetrics)
{
	(void)context;
	(void)openmetrics;
	fputs("answered 1\n", out);
	return 0;
}

int main(int argc, char **argv)
{
	struct exporter exporter;
	struct pollfd ready[2] = {{.fd = 0, .events = POLLIN}, {.events = POLLIN}};
	int status;

	if (argc != 2)
		return 2;
	status = exporter_open(&exporter, argv[1], print, NULL);
	if (status)
		return status;
	puts("ready");
	fflush(stdout);
	ready[1].fd = exporter.fd;
	/* until standard input ends */
	while (!ready[0].revents) {
		if (poll(ready, 2, 1000) < 0 && errno != EINTR)
			break;
		exporter_serve(&exporter);
	}
	exporter_close(&exporter);
	return 0;
}
