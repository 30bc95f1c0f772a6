// SPDX-License-Identifier: GPL-2.0-only
#include "dump_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define STALL_MS 10000

/* as tcpdump: FILE, FILE1, …; FILE0 …, with as many digits as the last needs, if they are counted
 */
static int name_file(const struct output *o, char name[PATH_MAX])
{
	char last[16];
	int digits, n;

	if (o->files) {
		digits = snprintf(last, sizeof(last), "%u", o->files - 1);
		n = snprintf(name, PATH_MAX, "%s%0*u", o->path, digits, o->number % o->files);
	} else if (o->number) {
		n = snprintf(name, PATH_MAX, "%s%u", o->path, o->number);
	} else {
		n = snprintf(name, PATH_MAX, "%s", o->path);
	}
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int open_file(struct output *o)
{
	char name[PATH_MAX];
	int err = name_file(o, name);

	if (err)
		return err;
	/* frames are for who may watch them */
	o->fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	o->written = 0;
	return o->fd < 0 ? -errno : 0;
}

void output_reset(struct output *o)
{
	o->buffer.length = 0;
	o->written = 0;
	o->number = 0;
	o->stream = o->gone = false;
	o->error = 0;
}

int output_open(struct output *o)
{
	struct stat st;
	int err = 0;

	if (o->path)
		err = open_file(o);
	if (!err && !fstat(o->fd, &st))
		o->stream = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
	return err;
}

/*
 * A writable pipe has room for PIPE_BUF bytes. After a signal we write on while the reader takes
 * anything, so that no block is cut, and give up when it takes nothing for STALL_MS.
 */
static bool wait_for_room(const struct output *o)
{
	struct pollfd fds[] = {
		{.fd = o->fd, .events = POLLOUT},
		{.fd = o->interrupt, .events = POLLIN},
	};
	int timeout = -1;

	for (;;) {
		int ready = poll(fds, 2, timeout);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready < 0)
			return false;
		if (!ready) {
			errno = EINTR;
			return false;
		}
		if (fds[0].revents)
			return true;
		fds[1].fd = -1;
		timeout = STALL_MS;
	}
}

bool output_flush(struct output *o)
{
	struct pcapng_buffer *b = &o->buffer;
	size_t done = 0;

	while (done < b->length && !o->gone && !o->error) {
		size_t piece = b->length - done;
		ssize_t n;

		if (o->stream && piece > PIPE_BUF)
			piece = PIPE_BUF;
		n = !o->stream || wait_for_room(o) ? write(o->fd, b->data + done, piece) : -1;
		if (n >= 0)
			done += n;
		else if (errno == EPIPE || (o->stream && errno == EINTR))
			o->gone = true;
		else if (errno != EINTR)
			o->error = errno;
	}
	o->written += done;
	b->length = 0;
	return !o->gone && !o->error;
}

bool output_is_full(const struct output *o, size_t block)
{
	return o->file_limit && o->written + o->buffer.length + block > o->file_limit;
}

int output_next(struct output *o)
{
	int err = output_close(o);

	o->number++;
	return err ?: open_file(o);
}

int output_close(struct output *o)
{
	bool good = output_flush(o);
	int err = good || o->gone ? 0 : -o->error;

	if (o->path && o->fd >= 0 && close(o->fd) && !err)
		err = -errno;
	if (o->path)
		o->fd = -1;
	return err;
}

void output_free(struct output *o)
{
	if (o->path && o->fd >= 0)
		close(o->fd);
	free(o->buffer.data);
	o->buffer.data = NULL;
}
