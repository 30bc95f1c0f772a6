/* SPDX-License-Identifier: GPL-2.0-only */
/* Metrics over HTTP, by libmicrohttpd, in the thread that calls exporter_serve(). */
#ifndef EXPORTER_H
#define EXPORTER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Write the metrics of now. 0, or an exit status after the error was printed. */
typedef int (*exporter_print)(void *context, FILE *out, bool openmetrics);

/* a scraper needs one; more would only hold our memory */
#define EXPORTER_CONNECTIONS 16

struct exporter_connection {
	int fd;		   /* -1: none */
	uint64_t since_ns; /* CLOCK_MONOTONIC */
};

struct exporter {
	struct MHD_Daemon *daemon; /* NULL: none */
	struct exporter_connection connections[EXPORTER_CONNECTIONS];
	char own_name[256], given_name[256]; /* of this machine; empty: unknown */
	int fd;				     /* readable when exporter_serve() has work; -1: none */
	exporter_print print;
	void *context;
	int status; /* of a print that failed */
};

/*
 * Listen at "[ADDRESS]:PORT" or "PORT"; without an address only for this machine. The answer to a
 * request for another name than this machine's is 403. Returns 0, or prints the error and returns
 * the exit status.
 */
int exporter_open(struct exporter *e, const char *where, exporter_print print, void *context);
/*
 * Answer what has been asked, and end connections that take too long. Call it when fd is readable,
 * and once a second.
 */
int exporter_serve(struct exporter *e);
void exporter_close(struct exporter *e);

#endif /* EXPORTER_H */
