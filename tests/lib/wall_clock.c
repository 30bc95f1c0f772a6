// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Preloaded into a program, shifts the time of day that it reads by the seconds in the file that
 * WALL_CLOCK_OFFSET names, at any moment. Monotonic clocks are left alone. Debian 12's libfaketime
 * makes every sleep of Python fail with EINVAL.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void map_offset(void)
{
	const char *path = getenv("WALL_CLOCK_OFFSET");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, file, 0);

	if (at == MAP_FAILED)
		abort();
	offset = at;
	close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int failed = syscall(SYS_clock_gettime, clock, now);

	if (!failed && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += *offset;
	return failed;
}

int gettimeofday(struct timeval *now, void *zone)
{
	struct timespec read;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &read);
	now->tv_sec = read.tv_sec;
	now->tv_usec = read.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *into)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (into)
		*into = now.tv_sec;
	return now.tv_sec;
}
