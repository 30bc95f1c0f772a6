// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two QEMUs on one virtual clock (docs/howto/lockstep.md): a plugin for each.
 *
 * The machines run with -icount sleep=off, so that virtual time is what the guest executes, or a
 * jump to its next timer. Our timer ends each quantum of virtual time, at places that are counted.
 * There the machine hands over what it sent, waits until the other is as far, and receives what
 * that one sent, at the same virtual time in every run.
 *
 * A machine whose processor sleeps says until which place. It sends nothing before, so the other
 * does not wait for it, and it stays here until the other is as far or has sent it a frame: this is
 * conservative simulation with lookahead (Chandy and Misra 1979). If both sleep, both jump.
 *
 * Unless `lock` says so, nobody waits, and frames cross as they come. Idle machines then keep to
 * the host's clock, or jump ahead of it while `hurries` is set.
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

#define EXPORT		 __attribute__((visibility("default")))
#define RING		 (1u << 22)
#define LONGEST_FRAME	 (1u << 17)
#define LONGEST_CHUNK	 (1u << 16)
#define FREE_NS		 100000	   /* a quantum while nobody waits */
#define FIRST_SLEEP_NS	 100000	   /* so long QEMU does not look at its other files: at first, */
#define LONGEST_SLEEP_NS 4000000   /* and after it slept on and on */
#define LOOK_NS		 100000000 /* how often to look whether the other still lives */
#define SPINS		 200
#define SPIN_NS		 200000 /* by the clock, while news comes so soon */
#define CLOCK_VIRTUAL	 1
#define NS		 1
#define ALL_BUT_EXTERNAL (~1) /* timers that QEMU jumps to */

struct notifier {
	void (*notify)(struct notifier *notifier, void *data);
	void *node[2];
};

void timer_init_full(void *timer, void *group, int clock, int scale, int attributes,
		     void (*expired)(void *opaque), void *opaque);
void timer_mod(void *timer, int64_t expire);
int64_t qemu_clock_get_ns(int clock);
int64_t qemu_clock_deadline_ns_all(int clock, int attributes);
bool all_cpu_threads_idle(void);
void *qemu_find_netdev(const char *id);
ssize_t qemu_send_packet(void *client, const uint8_t *frame, int size);
void qemu_add_machine_init_done_notifier(struct notifier *notifier);

struct end {
	_Atomic uint64_t reached;   /* its place */
	_Atomic uint64_t sleeps;    /* until that place << 32 | bytes that it had taken; 0: not */
	_Atomic uint32_t waits_for; /* a place of the other, or a frame; 0: for nothing */
	_Atomic uint32_t news;	    /* futex: something above, or `written`, changed */
	_Atomic uint32_t pid;
	_Atomic uint64_t written, taken; /* bytes of the ring */
	uint8_t ring[RING];		 /* chunks, each after its head */
};

struct chunk {
	uint64_t place;
	uint64_t bytes; /* a part of frames, each after its length, as QEMU's streams have them */
};

struct shared {
	_Atomic uint32_t lock;	  /* number of the locking that rocelab wants; 0: none */
	_Atomic uint32_t hurries; /* without a lock: nothing matters but the guests' timers */
	struct end end[2];
};

EXPORT int qemu_plugin_version = 1;
static struct shared *shared;
static struct end *mine, *other;
static struct sockaddr_un stream_path = {.sun_family = AF_UNIX};
static int stream = -1;
static int64_t quantum_ns, last_real_ns, sleep_ns;
static uint32_t locking;
static uint64_t here, next; /* places: number of the locking << 32 | quanta */
static uint8_t frames[LONGEST_FRAME + 4 + LONGEST_CHUNK];
static size_t filled;
static uint8_t timer[512] __attribute__((aligned(64))); /* QEMUTimer, which is smaller */

static int64_t real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void copy_in(uint64_t at, const void *from, size_t size)
{
	size_t part = RING - at % RING;

	if (part > size)
		part = size;
	memcpy(mine->ring + at % RING, from, part);
	memcpy(mine->ring, (const uint8_t *)from + part, size - part);
}

static void copy_out(uint64_t at, void *to, size_t size)
{
	size_t part = RING - at % RING;

	if (part > size)
		part = size;
	memcpy(to, other->ring + at % RING, part);
	memcpy((uint8_t *)to + part, other->ring, size - part);
}

/* Hand over what the guest has sent. QEMU's side of the stream listens. */
static void send_frames(void)
{
	static uint8_t sent[LONGEST_CHUNK];

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
		size_t room = RING - (written - atomic_load(&mine->taken));
		struct chunk head = {.place = here};
		ssize_t got = 0;

		if (room > sizeof(head) + sizeof(sent))
			got = recv(stream, sent, sizeof(sent), MSG_DONTWAIT);
		if (got <= 0)
			return;
		head.bytes = (uint64_t)got;
		copy_in(written, &head, sizeof(head));
		copy_in(written + sizeof(head), sent, (size_t)got);
		atomic_store(&mine->written, written + sizeof(head) + (size_t)got);
	}
}

/* Whether the other has sent what was not taken yet, and from which place. */
static bool has_sent(uint64_t *place)
{
	uint64_t taken = atomic_load(&other->taken);
	struct chunk head;

	if (atomic_load(&other->written) == taken)
		return false;
	copy_out(taken, &head, sizeof(head));
	*place = head.place;
	return true;
}

static void give_frames(void)
{
	void *client = qemu_find_netdev("data");
	size_t from = 0;

	while (filled - from >= 4) {
		const uint8_t *frame = frames + from + 4;
		uint32_t size = (uint32_t)frame[-4] << 24 | frame[-3] << 16 | frame[-2] << 8 |
				frame[-1];

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

/* Take what the other sent up to a place. */
static void receive_frames(uint64_t until)
{
	uint64_t place;

	while (has_sent(&place) && place <= until) {
		uint64_t taken = atomic_load(&other->taken);
		struct chunk head;

		copy_out(taken, &head, sizeof(head));
		if (head.bytes > sizeof(frames) - filled)
			abort();
		copy_out(taken + sizeof(head), frames + filled, head.bytes);
		filled += head.bytes;
		atomic_store(&other->taken, taken + sizeof(head) + head.bytes);
		give_frames();
	}
}

/* Wake the other if this is what it waits for. */
static void tell(bool at_once)
{
	uint32_t awaited;

	atomic_fetch_add(&mine->news, 1);
	awaited = atomic_load(&other->waits_for);
	if (awaited && (at_once || (uint32_t)here >= awaited))
		syscall(SYS_futex, &mine->news, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* The place up to which the other sends nothing more, given how much of ours it knew then. */
static uint64_t other_is_silent_until(uint64_t known)
{
	uint64_t sleeps = atomic_load(&other->sleeps), reached = atomic_load(&other->reached);
	uint64_t until = (uint64_t)locking << 32 | sleeps >> 32;

	if (reached >> 32 != locking || (uint32_t)sleeps != (uint32_t)known || until < reached)
		return reached;
	return until;
}

static bool is_wanted(void)
{
	return atomic_load(&shared->lock) == locking;
}

static bool other_is_dead(void)
{
	return kill((pid_t)atomic_load(&other->pid), 0) && errno == ESRCH;
}

/* To wake a thread takes the host longer than most waits: spin, unless the last one was long. */
static void wait_for_news(uint32_t known, int64_t limit_ns)
{
	static bool is_soon;
	int64_t begun_ns = real_ns(), spin_ns = SPIN_NS < limit_ns ? SPIN_NS : limit_ns;

	while (is_soon && atomic_load(&other->news) == known && real_ns() - begun_ns < spin_ns)
		__builtin_ia32_pause();
	if (atomic_load(&other->news) == known) {
		struct timespec limit = {.tv_nsec = is_soon ? limit_ns - spin_ns : limit_ns};

		syscall(SYS_futex, &other->news, FUTEX_WAIT, known, &limit, NULL, 0);
	}
	is_soon = real_ns() - begun_ns < SPIN_NS;
}

/* Wait until the other is here, too, or is known to send nothing until here. */
static void meet(uint64_t known)
{
	for (int i = 0; i < SPINS; i++) {
		if (other_is_silent_until(known) >= here)
			return;
		__builtin_ia32_pause();
	}
	atomic_store(&mine->waits_for, (uint32_t)here ? (uint32_t)here : 1);
	for (;;) {
		uint32_t news = atomic_load(&other->news);

		if (other_is_silent_until(known) >= here || !is_wanted() || other_is_dead())
			break;
		wait_for_news(news, LOOK_NS);
	}
	atomic_store(&mine->waits_for, 0);
}

/*
 * Sleep in place of the processor, until the other is so far that it can send nothing more before
 * `until`. Return the next place: the one after `until`, or where a frame comes, or, because QEMU
 * has to look at its files, where the other is.
 */
static uint64_t sleep_until(uint64_t until)
{
	int64_t end_ns = real_ns() + sleep_ns;
	uint64_t place = here;

	atomic_store(&mine->sleeps,
		     (until & UINT32_MAX) << 32 | (uint32_t)atomic_load(&other->taken));
	tell(true);
	atomic_store(&mine->waits_for, (uint32_t)until);
	for (;;) {
		uint32_t news = atomic_load(&other->news);
		uint64_t reached = atomic_load(&other->reached);
		int64_t left_ns = end_ns - real_ns();
		bool is_silent = other_is_silent_until(atomic_load(&mine->written)) >= until;

		if (has_sent(&place)) /* before it was silent */
			break;
		place = until + 1;
		if (is_silent || other_is_dead())
			break;
		place = reached < until ? reached : until;
		if (left_ns <= 0 || !is_wanted())
			break;
		wait_for_news(news, left_ns);
	}
	atomic_store(&mine->waits_for, 0);
	if (place < here)
		return here;
	return place > until + 1 ? until + 1 : place;
}

/* A sleeping machine jumps from timer to timer; it must not outrun the host's clock. */
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

/* Within how many ns of virtual time nothing happens here, if nothing comes from outside. */
static int64_t quiet_ns(void)
{
	int64_t ns;

	if (!all_cpu_threads_idle()) {
		sleep_ns = 0;
		return 0;
	}
	sleep_ns = sleep_ns ? 2 * sleep_ns : FIRST_SLEEP_NS;
	if (sleep_ns > LONGEST_SLEEP_NS)
		sleep_ns = LONGEST_SLEEP_NS;
	ns = qemu_clock_deadline_ns_all(CLOCK_VIRTUAL, ALL_BUT_EXTERNAL);
	return ns < 0 || ns > sleep_ns ? sleep_ns : ns;
}

/* While nobody waits for the other, frames wake a machine that sleeps. */
static int64_t end_free_quantum(void)
{
	uint32_t news = atomic_load(&other->news);
	uint64_t written = atomic_load(&mine->written), place;
	int64_t ns;

	here = 0;
	send_frames();
	if (atomic_load(&mine->written) != written)
		tell(true);
	receive_frames(UINT64_MAX);
	ns = quiet_ns();
	if (ns <= FREE_NS) {
		pace(FREE_NS);
		return FREE_NS;
	}
	atomic_store(&mine->waits_for, 1);
	if (!has_sent(&place) && !atomic_load(&shared->hurries))
		wait_for_news(news, ns);
	atomic_store(&mine->waits_for, 0);
	last_real_ns = real_ns();
	return has_sent(&place) ? 0 : ns;
}

/* Virtual time stands still meanwhile: QEMU's lock is held, by the vCPU's thread or its main one.
 */
static void end_quantum(void *unused)
{
	int64_t now = qemu_clock_get_ns(CLOCK_VIRTUAL), ns;
	uint32_t wanted = atomic_load(&shared->lock);
	uint64_t written = atomic_load(&mine->written);

	(void)unused;
	if (wanted != locking)
		next = (uint64_t)wanted << 32;
	locking = wanted;
	if (!locking) {
		timer_mod(timer, now + end_free_quantum());
		return;
	}
	here = next;
	send_frames();
	atomic_store(&mine->sleeps, 0);
	atomic_store(&mine->reached, here);
	tell(!(uint32_t)here || atomic_load(&mine->written) != written);
	meet(written);
	receive_frames(here);
	ns = quiet_ns();
	next = ns < quantum_ns ? here + 1 : sleep_until(here + (uint64_t)(ns / quantum_ns));
	pace((int64_t)(next - here) * quantum_ns);
	timer_mod(timer, now + (int64_t)(next - here) * quantum_ns);
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
