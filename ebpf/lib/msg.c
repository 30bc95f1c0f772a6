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
	case EMFILE:
	case ENFILE:
		return "too many files are open (ulimit -n)";
	case ENOMEM:
		return "there is too little memory";
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

/* NULL: no other name for the file would help */
static const char *why_not_opened(int err)
{
	switch (-err) {
	case ENOENT:
		return "its folder is missing";
	case EACCES:
	case EPERM:
	case EROFS:
		return "it, or its folder, is not writable";
	case EISDIR:
		return "the name of a folder is given where a file is needed";
	case ENOTDIR:
		return "a part of its path is a file, not a folder";
	case ENAMETOOLONG:
		return "the name is longer than its file system allows";
	case ELOOP:
		return "a symbolic link leads back to itself";
	case ENXIO:
	case ENODEV:
		return "no device or reader is behind that name";
	case ETXTBSY:
		return "it is a program that runs";
	default:
		return NULL;
	}
}

int msg_not_opened(const char *path, int err)
{
	const char *cause = why_not_opened(err);

	return cause ? msg_error(EXIT_USAGE, cause, "name a file that you may write",
				 "cannot write %s: %s", path, strerror(-err))
		     : msg_not_written(path, err);
}
