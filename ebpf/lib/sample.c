// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sample.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "msg.h"
#include "rdma_dev.h"

#define PARAMETER "/sys/module/rdma_rxe/parameters/stamp_one_of"

/* only root may write it, who need not if it is as wanted */
static int set_parameter(const struct sample *s, __u32 one_of)
{
	char now[16] = "", text[16];
	int length = snprintf(text, sizeof(text), "%u", one_of);

	if (pread(s->fd, now, sizeof(now) - 1, 0) > 0 && strtoul(now, NULL, 10) == one_of)
		return 0;
	if (s->writable < 0)
		return s->writable;
	return pwrite(s->writable, text, length, 0) == length ? 0 : -errno;
}

int sample_begin(struct sample *s, __u32 one_of, const char *device)
{
	int err = 0;

	*s = (struct sample){.one_of = one_of, .device = device, .writable = -EBADF};
	s->fd = open(PARAMETER, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0)
		return msg_error(EXIT_MISSING, "the driver is older than this program",
				 "build and load it again: make module", "cannot open %s: %s",
				 PARAMETER, strerror(errno));
	if (flock(s->fd, (one_of > 1 ? LOCK_EX : LOCK_SH) | LOCK_NB))
		err = -errno;
	if (err == -EWOULDBLOCK)
		return msg_error(EXIT_RUN,
				 one_of > 1 ? "another rxestat or rxetop runs"
					    : "rxestat or rxetop runs with --sample",
				 "let it end first",
				 "the driver chooses packets for one program only");
	/* now: at the end, the capability may be gone */
	s->writable = open(PARAMETER, O_WRONLY | O_CLOEXEC);
	if (s->writable < 0)
		s->writable = -errno;
	err = err ?: set_parameter(s, one_of);
	return err ? msg_error(EXIT_RUN,
			       err == -EACCES
				       ? "only root, or who has cap_dac_override, may choose "
					 "packets"
				       : NULL,
			       err == -EACCES ? "run it with sudo, or without --sample" : NULL,
			       "cannot write %s: %s", PARAMETER, strerror(-err))
		   : 0;
}

void sample_end(struct sample *s)
{
	if (!s->one_of || s->fd < 0)
		return;
	if (s->one_of > 1)
		set_parameter(s, 1);
	if (s->writable >= 0)
		close(s->writable);
	close(s->fd);
	s->fd = -1;
}

static bool read_counter(const char *device, const char *name, __u64 *sum)
{
	uint64_t value;
	char path[256];
	bool ok;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s", device,
		 name);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fscanf(f, "%" SCNu64, &value) == 1;
	fclose(f);
	if (ok)
		*sum += value;
	return ok;
}

/* counters since the devices were made, of those that are rxe's */
static struct packet_totals read_totals(const struct sample *s, __u32 *devices)
{
	struct rdma_dev devs[SAMPLE_DEVICES];
	struct packet_totals t = {.known = true};
	int n = rdma_dev_list(devs, SAMPLE_DEVICES);

	*devices = 0;
	for (int i = 0; i < n; i++) {
		if (s->device && strcmp(devs[i].name, s->device) != 0)
			continue;
		if (!read_counter(devs[i].name, "sent_pkts", &t.sent) ||
		    !read_counter(devs[i].name, "rcvd_pkts", &t.received))
			continue;
		*devices = *devices * 31 + devs[i].index + 1;
	}
	return t;
}

void sample_restart(struct sample *s)
{
	if (s->one_of <= 1)
		return;
	s->start = read_totals(s, &s->devices);
}

struct packet_totals sample_totals(const struct sample *s)
{
	struct packet_totals t;
	__u32 devices;

	t = read_totals(s, &devices);
	t.known = devices == s->devices;
	t.sent -= s->start.sent;
	t.received -= s->start.received;
	return t;
}
