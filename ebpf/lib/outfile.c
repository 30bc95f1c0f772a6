// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capability.h"
#include "msg.h"

/* a plain file, or nothing yet: a rename may replace it */
static bool is_replaceable(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? errno == ENOENT : S_ISREG(st.st_mode);
}

/* a device, a pipe, or the target of a symbolic link */
static int open_in_place(struct outfile *f, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	f->stream = fdopen(fd, "w");
	if (!f->stream) {
		int err = -errno;

		close(fd);
		return err;
	}
	return 0;
}

static int open_temporary(struct outfile *f, const char *path)
{
	mode_t mask = umask(0);
	int fd, n;

	umask(mask);
	n = snprintf(f->temporary, sizeof(f->temporary), "%s.XXXXXX", path);
	if (n < 0 || n >= (int)sizeof(f->temporary))
		return -ENAMETOOLONG;
	fd = mkostemp(f->temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* mkostemp's 0600 would hide the result from users who may read its folder */
	if (fchmod(fd, 0666 & ~mask) || !(f->stream = fdopen(fd, "w"))) {
		int err = -errno;

		close(fd);
		unlink(f->temporary);
		return err;
	}
	f->replaced = path;
	return 0;
}

int outfile_open(struct outfile *f, const char *path, bool grows)
{
	int err;

	memset(f, 0, sizeof(*f));
	if (!path || !strcmp(path, "-")) {
		f->stream = stdout;
		return 0;
	}
	err = !grows && is_replaceable(path) ? open_temporary(f, path) : open_in_place(f, path);
	return err ? msg_not_opened(path, err) : 0;
}

__u64 outfile_name_needs(const char *path)
{
	char folder[PATH_MAX];
	struct stat st;

	snprintf(folder, sizeof(folder), "%s", path);
	/* in a sticky one, only the owner of a file replaces it */
	return stat(dirname(folder), &st) || st.st_uid == geteuid()
		       ? 0
		       : CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_FOWNER);
}

__u64 outfile_needs(const struct outfile *f)
{
	return f->replaced ? outfile_name_needs(f->replaced) : 0;
}

/* a device or a pipe cannot and need not be synchronized */
static bool sync_failed(int fd)
{
	return fsync(fd) && errno != EINVAL && errno != EROFS;
}

/* write out what is buffered, and close; stdout stays open */
static int finish(struct outfile *f)
{
	FILE *stream = f->stream;
	int err = 0;

	f->stream = NULL;
	errno = 0;
	if (fflush(stream) || ferror(stream))
		err = errno ? -errno : -EIO;
	if (stream == stdout)
		return err;
	if (!err && sync_failed(fileno(stream)))
		err = -errno;
	if (fclose(stream) && !err)
		err = -errno;
	return err;
}

int outfile_commit(struct outfile *f)
{
	int err = finish(f);

	if (err) {
		if (f->replaced)
			unlink(f->temporary);
		return msg_not_written("the result", err);
	}
	if (f->replaced && rename(f->temporary, f->replaced)) {
		err = -errno;
		unlink(f->temporary);
		return msg_error(
			EXIT_RUN,
			"meanwhile its folder changed, or another kind of file got its name", NULL,
			"cannot name the result %s: %s", f->replaced, strerror(-err));
	}
	return 0;
}

void outfile_discard(struct outfile *f)
{
	if (f->stream && f->stream != stdout)
		fclose(f->stream);
	if (f->stream && f->replaced)
		unlink(f->temporary);
	f->stream = NULL;
}
