/* SPDX-License-Identifier: GPL-2.0-only */
/* Metrics over HTTP, by libmicrohttpd, in the thread that calls exporter_serve(). */
#ifndef EXPORTER_H
#define EXPORTER_H

#include <stdbool.h>
#include <stdio.h>

/* Write the metrics of now. 0, or an exit status after the error was printed. */
typedef int (*exporter_print)(void *context, FILE *out, bool openmetrics);

struct exporter {
	struct MHD_Daemon *daemon; /* NULL: none */
	int fd;			   /* readable when exporter_serve() has work; -1: none */
	exporter_print print;
	void *context;
	int status; /* of a print that failed */
};

/*
 * Listen at "[ADDRESS]:PORT" or "PORT"; without an address only for this machine. Returns 0, or
 * prints the error and returns the exit status.
 */
int exporter_open(struct exporter *e, const char *where, exporter_print print, void *context);
/* Answer what has been asked. Call it when fd is readable, and once a second. */
int exporter_serve(struct exporter *e);
void exporter_close(struct exporter *e);

#endif /* EXPORTER_H */
