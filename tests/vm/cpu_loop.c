// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CPU time of known kind, for the tests of rxecpu: cpu_loop KIND MILLISECONDS
 *
 *   user     arithmetic, until the thread has used that much CPU time
 *   syscall  system calls of long duration: reads of /dev/zero, 1 MiB each
 *   softirq  datagrams to an address of this machine, which the receive softirq drops
 *
 * Prints what the loop used, and the whole program until then, by the thread's clock:
 * "user 512345678 of 540000000 ns".
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 20];

static long long used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* long enough that the system call for the time is negligible */
static void spin(void)
{
	static volatile unsigned int sink;

	for (unsigned int i = 0; i < 2000000; i++)
		sink += i;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	long long begin, limit;
	int fd = -1;

	if (argc != 3)
		return 2;
	limit = atoll(argv[2]) * 1000000;
	if (!strcmp(argv[1], "syscall"))
		fd = open("/dev/zero", O_RDONLY);
	else if (!strcmp(argv[1], "softirq"))
		fd = socket(AF_INET, SOCK_DGRAM, 0);
	else if (strcmp(argv[1], "user"))
		return 2;
	if (argv[1][0] == 's' && fd < 0)
		fail("open");
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memset(buffer, 1, sizeof(buffer)); /* its page faults come now */

	begin = used();
	while (used() - begin < limit) {
		switch (argv[1][1]) {
		case 's':
			spin();
			break;
		case 'y':
			if (read(fd, buffer, sizeof(buffer)) != sizeof(buffer))
				fail("read");
			break;
		default:
			for (int i = 0; i < 64; i++)
				sendto(fd, buffer, 64, 0, (struct sockaddr *)&to, sizeof(to));
		}
	}
	limit = used();
	printf("%s %lld of %lld ns\n", argv[1], limit - begin, limit);
	return 0;
}
