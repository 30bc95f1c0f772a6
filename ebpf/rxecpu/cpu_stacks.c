// SPDX-License-Identifier: GPL-2.0-only
#include "cpu_stacks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_symbols.h"
#include "map_clear.h"
#include "msg.h"

#include "rxecpu.skel.h"

/* a little off a millisecond, so that samples and ticks do not stay in step */
#define PERIOD_NS 1003000ull

static const char *const kind_names[STACK_KINDS] = {
	[STACK_RUNNING] = "running",
	[STACK_BLOCKED] = "blocked",
	[STACK_RUNNABLE] = "runnable",
};

/* the kernel refuses a map of deeper stacks than this; 0: unknown */
static int deepest_stack(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_max_stack", "re");
	int deepest = 0;

	if (file && fscanf(file, "%d", &deepest) != 1)
		deepest = 0;
	if (file)
		fclose(file);
	return deepest;
}

int stacks_check(void)
{
	int deepest = deepest_stack();

	if (deepest && deepest < STACK_DEPTH)
		return msg_error(
			EXIT_MISSING,
			"this machine was set up to keep less of a stack than the kernel's default",
			"sysctl kernel.perf_event_max_stack=127, or run it without --stacks",
			"cannot record stacks: kernel.perf_event_max_stack is %d", deepest);
	return 0;
}

void stacks_choose(struct rxecpu_bpf *skel, bool wanted)
{
	skel->rodata->with_stacks = wanted;
	if (wanted)
		return;
	bpf_program__set_autoload(skel->progs.stack_sample, false);
	bpf_program__set_autoload(skel->progs.stack_wakeup, false);
	bpf_map__set_max_entries(skel->maps.stack_traces, 1);
	bpf_map__set_max_entries(skel->maps.more_stack_traces, 1);
	bpf_map__set_max_entries(skel->maps.stack_sums, 1);
	bpf_map__set_max_entries(skel->maps.stack_offs, 1);
	bpf_map__set_max_entries(skel->maps.workers_woken, 1);
}

static int forget(struct stacks *s)
{
	const struct bpf_map *keyed[] = {
		s->skel->maps.stack_traces,  s->skel->maps.more_stack_traces,
		s->skel->maps.stack_sums,    s->skel->maps.stack_offs,
		s->skel->maps.workers_woken,
	};
	__u32 zero = 0;
	__u64 *none;
	int err = 0;

	for (unsigned int i = 0; i < sizeof(keyed) / sizeof(keyed[0]) && !err; i++)
		err = map_clear_keys(keyed[i]);
	none = calloc(libbpf_num_possible_cpus(), sizeof(*none));
	err = err ?: none ? 0 : -ENOMEM;
	if (!err && bpf_map_update_elem(bpf_map__fd(s->skel->maps.waited), &zero, none, BPF_ANY))
		err = -errno;
	free(none);
	memset(s->skel->bss->wait_sums, 0, sizeof(s->skel->bss->wait_sums));
	s->skel->bss->stacks_lost = 0;
	user_code_free(&s->code);
	s->used = false;
	return err;
}

int stacks_prepare(struct stacks *s, struct rxecpu_bpf *skel, bool wanted)
{
	int status = wanted ? stacks_check() : 0, err = 0;

	s->skel = skel;
	skel->bss->stacks_wanted = wanted && !status;
	if (!status && s->used)
		err = forget(s);
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot empty the BPF maps: %s",
			       strerror(-err))
		   : status;
}

static int sample_cpu(struct stacks *s, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
		.sample_period = PERIOD_NS,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	s->links[s->ncpus] = bpf_program__attach_perf_event(s->skel->progs.stack_sample, fd);
	if (!s->links[s->ncpus]) {
		int err = -errno;

		close(fd);
		return err;
	}
	s->ncpus++;
	return 0;
}

int stacks_begin(struct stacks *s, const int *cpu, int ncpus)
{
	int err;

	s->used = true;
	s->links = calloc(ncpus, sizeof(*s->links));
	err = s->links ? 0 : -ENOMEM;
	for (int i = 0; i < ncpus && !err; i++)
		err = sample_cpu(s, cpu[i]);
	return err ? msg_error(EXIT_RUN, "a container or kernel.perf_event_paranoid forbids it",
			       "run it without --stacks", "cannot sample the CPUs: %s",
			       strerror(-err))
		   : 0;
}

/* each process once a look, however many stacks it has */
static int compare_tgids(const void *a, const void *b)
{
	__u32 left = *(const __u32 *)a, right = *(const __u32 *)b;

	return left < right ? -1 : left > right;
}

void stacks_look(struct stacks *s)
{
	int fd = s->skel ? bpf_map__fd(s->skel->maps.stack_sums) : -1;
	struct stack_key key, *before = NULL;
	__u32 *tgids = malloc(STACK_SUMS * sizeof(*tgids));
	size_t n = 0;

	while (tgids && n < STACK_SUMS && !bpf_map_get_next_key(fd, before, &key)) {
		if (key.user >= 0)
			tgids[n++] = key.tgid;
		before = &key;
	}
	if (n)
		qsort(tgids, n, sizeof(*tgids), compare_tgids);
	for (size_t i = 0; i < n; i++) {
		if (!i || tgids[i] != tgids[i - 1])
			user_code_look(&s->code, tgids[i]);
	}
	free(tgids);
}

/* a frame's name: printable, without the format's separators */
static void put_name(FILE *out, const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		char c = name[i];

		fputc(c > ' ' && c < 0x7f && c != ';' ? c : '_', out);
	}
}

/* "libibverbs.so.1+0x1234": where the code is in its file */
static void put_user(FILE *out, const struct stacks *s, __u32 tgid, __u64 address)
{
	const struct mapped_file *file = user_code_find(&s->code, tgid, address);

	if (!file) {
		fputs("[user]", out);
		return;
	}
	put_name(out, file->name, strlen(file->name));
	fprintf(out, "+0x%" PRIx64, (uint64_t)(address - file->begin + file->offset));
}

static int read_stack(const struct stacks *s, __s32 number, __u64 stack[STACK_DEPTH])
{
	const struct bpf_map *table = s->skel->maps.stack_traces;
	__u32 key = number;
	int depth = 0;

	if (number >= STACK_ENTRIES) {
		table = s->skel->maps.more_stack_traces;
		key -= STACK_ENTRIES;
	}
	memset(stack, 0, STACK_DEPTH * sizeof(*stack));
	if (number < 0 || bpf_map_lookup_elem(bpf_map__fd(table), &key, stack))
		return 0;
	while (depth < STACK_DEPTH && stack[depth])
		depth++;
	return depth;
}

static void put_account(FILE *out, enum stack_kind kind, int account)
{
	fprintf(out, "%s;%s;%s;", kind_names[kind], context_names[account_context(account)],
		account_owner(account));
}

/* less than half a microsecond is no line */
static void put_time(FILE *out, __u64 ns)
{
	fprintf(out, " %" PRIu64 "\n", (uint64_t)(ns + 500) / 1000);
}

static void put_line(FILE *out, const struct stacks *s, const struct kernel_symbols *symbols,
		     const struct stack_key *key, __u64 ns)
{
	__u64 stack[STACK_DEPTH];
	int depth;

	put_account(out, key->kind, key->account);
	put_name(out, key->comm, strnlen(key->comm, sizeof(key->comm)));
	if (key->user < 0 && key->user != STACK_NONE)
		fputs(";[lost]", out);
	depth = read_stack(s, key->user, stack);
	for (int i = depth - 1; i >= 0; i--) {
		fputc(';', out);
		put_user(out, s, key->tgid, stack[i]);
	}
	if (key->kernel < 0 && key->kernel != STACK_NONE)
		fputs(";[lost]", out);
	depth = read_stack(s, key->kernel, stack);
	for (int i = depth - 1; i >= 0; i--) {
		const char *name = kernel_symbols_find(symbols, stack[i]);

		fputc(';', out);
		if (name)
			put_name(out, name, strlen(name));
		else
			fprintf(out, "0x%" PRIx64, (uint64_t)stack[i]);
	}
	put_time(out, ns);
}

/* what sleeps or waits at the end, until then */
static void end_stays(const struct stacks *s, __u64 end_ns)
{
	int offs = bpf_map__fd(s->skel->maps.stack_offs);
	int sums = bpf_map__fd(s->skel->maps.stack_sums);
	__u32 pid, *before = NULL;
	struct stack_off off;

	for (; !bpf_map_get_next_key(offs, before, &pid); before = &pid) {
		__u64 ns = 0, stop;

		if (bpf_map_lookup_elem(offs, &pid, &off))
			continue;
		for (int kind = STACK_BLOCKED; kind <= STACK_RUNNABLE; kind++) {
			__u64 begin = kind == STACK_BLOCKED ? off.since : off.woken;

			stop = kind == STACK_BLOCKED && off.woken && off.woken < end_ns ? off.woken
											: end_ns;
			if (!begin || stop <= begin)
				continue;
			off.key.kind = kind;
			ns = 0;
			bpf_map_lookup_elem(sums, &off.key, &ns);
			ns += stop - begin;
			bpf_map_update_elem(sums, &off.key, &ns, BPF_ANY);
		}
	}
}

void stacks_write(struct stacks *s, FILE *out, const struct report *r)
{
	struct stack_key key, *before = NULL;
	int fd = bpf_map__fd(s->skel->maps.stack_sums);
	struct kernel_symbols symbols;

	end_stays(s, r->session.end_ns);
	stacks_look(s);
	if (kernel_symbols_read(&symbols))
		msg("/proc/kallsyms hides addresses without cap_syslog: frames of the kernel are "
		    "numbers");
	while (!bpf_map_get_next_key(fd, before, &key)) {
		__u64 ns = 0;

		before = &key;
		if (!bpf_map_lookup_elem(fd, &key, &ns) && ns >= 500)
			put_line(out, s, &symbols, &key, ns);
	}
	kernel_symbols_free(&symbols);
	for (int a = 0; a < ACCOUNTS; a++) {
		if (r->unsampled[a] < 500)
			continue;
		put_account(out, STACK_RUNNING, a);
		fputs("[no_sample]", out);
		put_time(out, r->unsampled[a]);
	}
}

void stacks_waits(const struct stacks *s, struct wait_sum waits[WAITERS], __u64 *lost)
{
	memcpy(waits, s->skel->bss->wait_sums, WAITERS * sizeof(waits[0]));
	*lost = s->skel->bss->stacks_lost;
}

void stacks_detach(struct stacks *s)
{
	while (s->ncpus)
		bpf_link__destroy(s->links[--s->ncpus]);
	free(s->links);
	s->links = NULL;
}

void stacks_end(struct stacks *s)
{
	stacks_detach(s);
	user_code_free(&s->code);
}
