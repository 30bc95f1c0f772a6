// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "msg.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *msg_program = "rocelab";
bool msg_verbose;

static void line(const char *format, va_list args)
{
	fprintf(stderr, "%s: ", msg_program);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void msg(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(format, args);
	va_end(args);
}

int msg_error(int status, const char *cause, const char *action, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(format, args);
	va_end(args);
	if (cause)
		fprintf(stderr, "  likely cause: %s\n", cause);
	if (action)
		fprintf(stderr, "  what to do: %s\n", action);
	return status;
}

static const char *why_not_written(int err)
{
	switch (-err) {
	case ENOSPC:
		return "the disk is full";
	case EDQUOT:
		return "your quota on that disk is used up";
	case EFBIG:
		return "a limit allows no larger files (ulimit -f)";
	case EPIPE:
		return "the reader has gone";
	case ENETDOWN:
		return "the interface went down";
	default:
		return "the disk fails, or what is written to does";
	}
}

int msg_not_written(const char *what, int err)
{
	return msg_error(EXIT_RUN, why_not_written(err), NULL, "cannot write %s: %s", what,
			 strerror(-err));
}
