// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "msg.h"

static int open_aside(struct outfile *f, const char *path)
{
	mode_t mask = umask(0);
	int fd, n;

	umask(mask);
	f->path = path;
	f->stream = stdout;
	if (!path)
		return 0;
	n = snprintf(f->aside, sizeof(f->aside), "%s.XXXXXX", path);
	if (n < 0 || n >= (int)sizeof(f->aside))
		return -ENAMETOOLONG;
	fd = mkostemp(f->aside, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* mkstemp's 0600 would hide the result from whoever may read its folder */
	if (fchmod(fd, 0666 & ~mask) || !(f->stream = fdopen(fd, "w"))) {
		int err = -errno;

		close(fd);
		unlink(f->aside);
		f->stream = NULL;
		return err;
	}
	return 0;
}

int outfile_open(struct outfile *f, const char *path)
{
	int err = open_aside(f, path);

	return err ? msg_error(EXIT_USAGE, "its folder is missing, or not writable", NULL,
			       "cannot write %s: %s", path, strerror(-err))
		   : 0;
}

static int put_in_place(struct outfile *f)
{
	FILE *stream = f->stream;
	int err = 0;

	f->stream = NULL;
	errno = 0;
	if (fflush(stream) || ferror(stream))
		err = errno ? -errno : -EIO;
	if (!f->path)
		return err;
	if (!err && fsync(fileno(stream)) && errno != EINVAL)
		err = -errno;
	if (fclose(stream) && !err)
		err = -errno;
	if (!err && rename(f->aside, f->path))
		err = -errno;
	if (err)
		unlink(f->aside);
	return err;
}

int outfile_commit(struct outfile *f)
{
	int err = put_in_place(f);

	return err ? msg_error(EXIT_RUN, "the disk is full, or the reader has gone", NULL,
			       "cannot write the result: %s", strerror(-err))
		   : 0;
}

void outfile_discard(struct outfile *f)
{
	if (f->path && f->stream) {
		fclose(f->stream);
		unlink(f->aside);
	}
	f->stream = NULL;
}
