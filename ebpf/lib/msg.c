// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "msg.h"

#include <stdarg.h>
#include <stdio.h>

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
