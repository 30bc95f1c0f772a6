// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two QEMUs on one virtual clock (docs/howto/lockstep.md): a plugin for each.
 *
 * The machines run with -icount sleep=off, so that virtual time is what the guest executes, or a
 * jump to its next timer. Our timer ends each quantum of virtual time. There the machine hands over
 * what it sent, waits until the other is as far, and receives what that one sent, at the same
 * virtual time in every run. Unless `lock` says so, nobody waits, and frames cross as they come.
 *
 * The stable plugin interface has neither timers nor frames. Debian's QEMU exports its own
 * functions for its modules; those below have kept their signatures from 7.2 to 10.0.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define EXPORT	      __attribute__((visibility("default")))
#define RING	      (1u << 22)
#define LONGEST_FRAME (1u << 17)
#define FREE_NS	      100000	/* a quantum while nobody waits */
#define LOOK_NS	      100000000 /* how often to look whether the other still lives */
#define SPINS	      200
#define CLOCK_VIRTUAL 1
#define NS	      1

struct notifier {
	void (*notify)(struct notifier *notifier, void *data);
	void *node[2];
};

void timer_init_full(void *timer, void *group, int clock, int scale, int attributes,
		     void (*expired)(void *opaque), void *opaque);
void timer_mod(void *timer, int64_t expire);
int64_t qemu_clock_get_ns(int clock);
void *qemu_find_netdev(const char *id);
ssize_t qemu_send_packet(void *client, const uint8_t *frame, int size);
void qemu_add_machine_init_done_notifier(struct notifier *notifier);

struct end {
	_Atomic uint64_t reached; /* number of the locking << 32 | places at which it waited */
	_Atomic uint32_t news;	  /* futex: `reached` changed */
	_Atomic uint32_t pid;
	_Atomic uint64_t written, taken; /* bytes of the ring */
	uint8_t ring[RING]; /* frames, each after its length, as QEMU's streams have them */
};

struct shared {
	_Atomic uint32_t lock; /* number of the locking that rocelab wants; 0: none */
	struct end end[2];
};

EXPORT int qemu_plugin_version = 1;
static struct shared *shared;
static struct end *mine, *other;
static struct sockaddr_un stream_path = {.sun_family = AF_UNIX};
static int stream = -1;
static int64_t quantum_ns, next_ns, last_real_ns;
static uint32_t locking, place;
static uint8_t frames[LONGEST_FRAME + 4];
static size_t filled;
static uint8_t timer[512] __attribute__((aligned(64))); /* QEMUTimer, which is smaller */

static int64_t real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static bool is_there(void)
{
	return atomic_load(&other->reached) >= ((uint64_t)locking << 32 | place);
}

/* Wait until both are here. False if that is no longer wanted, or the other has died. */
static bool meet(void)
{
	struct timespec limit = {.tv_nsec = LOOK_NS};

	atomic_store(&mine->reached, (uint64_t)locking << 32 | ++place);
	atomic_fetch_add(&mine->news, 1);
	syscall(SYS_futex, &mine->news, FUTEX_WAKE, 1, NULL, NULL, 0);
	for (int i = 0; i < SPINS; i++) {
		if (is_there())
			return true;
		__builtin_ia32_pause();
	}
	for (;;) {
		uint32_t news = atomic_load(&other->news);

		if (is_there())
			return true;
		if (atomic_load(&shared->lock) != locking)
			return false;
		if (kill((pid_t)atomic_load(&other->pid), 0) && errno == ESRCH)
			return false;
		syscall(SYS_futex, &other->news, FUTEX_WAIT, news, &limit, NULL, 0);
	}
}

/* Hand over what the guest has sent. QEMU's side of the stream listens. */
static void send_frames(void)
{
	if (stream < 0) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(fd, (struct sockaddr *)&stream_path, sizeof(stream_path))) {
			close(fd);
			return;
		}
		stream = fd;
	}
	for (;;) {
		uint64_t written = atomic_load(&mine->written);
		size_t at = written % RING, room = RING - (written - atomic_load(&mine->taken));
		ssize_t got;

		if (room > RING - at)
			room = RING - at;
		got = room ? recv(stream, mine->ring + at, room, MSG_DONTWAIT) : 0;
		if (got <= 0)
			return;
		atomic_store(&mine->written, written + got);
	}
}

static void receive_frames(uint64_t written)
{
	uint64_t taken = atomic_load(&other->taken);
	void *client = qemu_find_netdev("data");

	while (taken < written) {
		size_t at = taken % RING, part = written - taken, from = 0;

		if (part > RING - at)
			part = RING - at;
		if (part > sizeof(frames) - filled)
			part = sizeof(frames) - filled;
		memcpy(frames + filled, other->ring + at, part);
		filled += part;
		taken += part;
		while (filled - from >= 4) {
			const uint8_t *frame = frames + from + 4;
			uint32_t size = (uint32_t)frame[-4] << 24 | frame[-3] << 16 |
					frame[-2] << 8 | frame[-1];

			if (size > LONGEST_FRAME) {
				fprintf(stderr, "lockstep: a frame of %u bytes\n", size);
				abort();
			}
			if (filled - from < 4 + (size_t)size)
				break;
			qemu_send_packet(client, frame, (int)size);
			from += 4 + size;
		}
		filled -= from;
		memmove(frames, frames + from, filled);
	}
	atomic_store(&other->taken, taken);
}

/* An idle machine jumps from timer to timer; it must not outrun the host's clock. */
static void pace(int64_t virtual_ns)
{
	int64_t now = real_ns(), early = last_real_ns + virtual_ns - now;

	if (early > 0) {
		struct timespec rest = {.tv_nsec = early};

		nanosleep(&rest, NULL);
		now = real_ns();
	}
	last_real_ns = now;
}

/* Virtual time stands still meanwhile: QEMU's lock is held, by the vCPU's thread or its main one.
 */
static void end_quantum(void *unused)
{
	int64_t now = qemu_clock_get_ns(CLOCK_VIRTUAL);
	uint32_t wanted = atomic_load(&shared->lock);
	uint64_t written;

	(void)unused;
	if (wanted != locking) {
		locking = wanted;
		place = 0;
	}
	send_frames();
	if (locking)
		meet();
	written = atomic_load(&other->written);
	if (locking)
		meet(); /* before it sends more */
	receive_frames(written);
	next_ns = now + (locking ? quantum_ns : FREE_NS);
	pace(next_ns - now);
	timer_mod(timer, next_ns);
}

static void machine_is_ready(struct notifier *unused, void *data)
{
	(void)unused;
	(void)data;
	last_real_ns = real_ns();
	timer_init_full(timer, NULL, CLOCK_VIRTUAL, NS, 0, end_quantum, NULL);
	timer_mod(timer, FREE_NS);
}

static struct notifier ready = {.notify = machine_is_ready};

static const char *value(int argc, char **argv, const char *name)
{
	size_t length = strlen(name);

	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
			return argv[i] + length + 1;
	fprintf(stderr, "lockstep: the argument %s is missing\n", name);
	exit(2);
}

EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	int index = atoi(value(argc, argv, "end")) == 2;
	int fd = open(value(argc, argv, "shared"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)id;
	(void)info;
	quantum_ns = atoll(value(argc, argv, "quantum"));
	strncpy(stream_path.sun_path, value(argc, argv, "stream"),
		sizeof(stream_path.sun_path) - 1);
	if (fd < 0 || ftruncate(fd, sizeof(*shared))) {
		perror("lockstep: shared memory");
		return -1;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED) {
		perror("lockstep: shared memory");
		return -1;
	}
	mine = &shared->end[index];
	other = &shared->end[!index];
	atomic_store(&mine->pid, (uint32_t)getpid());
	prctl(PR_SET_TIMERSLACK, 1000);
	qemu_add_machine_init_done_notifier(&ready);
	return 0;
}

/* QEMU 9 and later refuse plugins of the interface's first version. */
__attribute__((constructor)) static void choose_version(void)
{
	if (dlsym(RTLD_DEFAULT, "bql_lock_impl"))
		qemu_plugin_version = 4;
}
