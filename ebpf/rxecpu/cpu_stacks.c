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
#include "msg.h"

#include "rxecpu.skel.h"

/* a little off a millisecond, so that samples and ticks do not stay in step */
#define PERIOD_NS 1003000ull

static const char *const kind_names[STACK_KINDS] = {
	[STACK_RUNNING] = "running",
	[STACK_BLOCKED] = "blocked",
	[STACK_RUNNABLE] = "runnable",
};

void stacks_choose(struct rxecpu_bpf *skel, bool wanted)
{
	skel->rodata->with_stacks = wanted;
	skel->rodata->stack_period = PERIOD_NS;
	if (wanted)
		return;
	bpf_program__set_autoload(skel->progs.stack_sample, false);
	bpf_program__set_autoload(skel->progs.stack_wakeup, false);
	bpf_map__set_max_entries(skel->maps.stack_traces, 1);
	bpf_map__set_max_entries(skel->maps.stack_sums, 1);
	bpf_map__set_max_entries(skel->maps.stack_offs, 1);
	bpf_map__set_max_entries(skel->maps.workers_woken, 1);
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

int stacks_begin(struct stacks *s, struct rxecpu_bpf *skel, const int *cpu, int ncpus)
{
	int err;

	s->skel = skel;
	s->links = calloc(ncpus, sizeof(*s->links));
	err = s->links ? 0 : -ENOMEM;
	for (int i = 0; i < ncpus && !err; i++)
		err = sample_cpu(s, cpu[i]);
	return err ? msg_error(EXIT_RUN, "a container or kernel.perf_event_paranoid forbids it",
			       "run it without --stacks", "cannot sample the CPUs: %s",
			       strerror(-err))
		   : 0;
}

static const struct process_maps *find_process(const struct stacks *s, __u32 tgid)
{
	for (int i = 0; i < s->nprocesses; i++) {
		if (s->processes[i].tgid == tgid)
			return &s->processes[i];
	}
	return NULL;
}

static char *read_maps(__u32 tgid)
{
	char path[32], line[512], *text = NULL;
	size_t size = 0;
	FILE *f, *out;

	snprintf(path, sizeof(path), "/proc/%u/maps", tgid);
	f = fopen(path, "re");
	out = f ? open_memstream(&text, &size) : NULL;
	while (out && fgets(line, sizeof(line), f)) {
		if (strstr(line, " r-xp "))
			fputs(line, out);
	}
	if (f)
		fclose(f);
	if (out)
		fclose(out);
	return text;
}

static void remember(struct stacks *s, __u32 tgid)
{
	struct process_maps *more;
	char *text;

	if (!tgid || find_process(s, tgid))
		return;
	text = read_maps(tgid);
	if (!text)
		return;
	more = realloc(s->processes, (s->nprocesses + 1) * sizeof(*more));
	if (!more) {
		free(text);
		return;
	}
	s->processes = more;
	s->processes[s->nprocesses++] = (struct process_maps){tgid, text};
}

void stacks_look(struct stacks *s)
{
	struct stack_key key, *before = NULL;
	int fd = s->skel ? bpf_map__fd(s->skel->maps.stack_sums) : -1;

	while (fd >= 0 && !bpf_map_get_next_key(fd, before, &key)) {
		if (key.user >= 0)
			remember(s, key.tgid);
		before = &key;
	}
}

/* a frame's name has no separator, space or control character */
static void put_name(FILE *out, const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = name[i];

		fputc(c <= ' ' || c == ';' || c == 0x7f ? '_' : c, out);
	}
}

/* "libibverbs.so.1+0x1234": where the code is in its file */
static void put_user(FILE *out, const struct process_maps *process, __u64 address)
{
	unsigned long long begin, end, offset;
	int path;

	for (const char *line = process ? process->text : ""; *line;) {
		const char *next = strchr(line, '\n');

		path = 0;
		if (next &&
		    sscanf(line, "%llx-%llx %*s %llx %*s %*s %n", &begin, &end, &offset, &path) >=
			    3 &&
		    path && address >= begin && address < end) {
			const char *file = line + path;

			for (const char *c = file; c < next; c++) {
				if (*c == '/')
					file = c + 1;
			}
			put_name(out, file, next - file);
			fprintf(out, "+0x%llx", (unsigned long long)(address - begin + offset));
			return;
		}
		line = next ? next + 1 : "";
	}
	fputs("[user]", out);
}

static int read_stack(const struct stacks *s, __s32 number, __u64 stack[STACK_DEPTH])
{
	__u32 key = number;
	int depth = 0;

	memset(stack, 0, STACK_DEPTH * sizeof(*stack));
	if (number < 0 || bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.stack_traces), &key, stack))
		return 0;
	while (depth < STACK_DEPTH && stack[depth])
		depth++;
	return depth;
}

static void put_line(FILE *out, const struct stacks *s, const struct kernel_symbols *symbols,
		     const struct stack_key *key, __u64 us)
{
	const struct process_maps *process = find_process(s, key->tgid);
	__u64 stack[STACK_DEPTH];
	int depth;

	fprintf(out, "%s;%s;%s;", key->kind < STACK_KINDS ? kind_names[key->kind] : "unknown",
		context_names[account_context(key->account)], account_owner(key->account));
	put_name(out, key->comm, strnlen(key->comm, sizeof(key->comm)));
	if (key->user < 0 && key->user != STACK_NONE)
		fputs(";[lost]", out);
	depth = read_stack(s, key->user, stack);
	for (int i = depth - 1; i >= 0; i--) {
		fputc(';', out);
		put_user(out, process, stack[i]);
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
	fprintf(out, " %" PRIu64 "\n", (uint64_t)us);
}

void stacks_write(struct stacks *s, FILE *out)
{
	struct stack_key key, *before = NULL;
	int fd = bpf_map__fd(s->skel->maps.stack_sums);
	struct kernel_symbols symbols;

	stacks_look(s);
	if (kernel_symbols_read(&symbols))
		msg("/proc/kallsyms hides addresses without cap_syslog: frames of the kernel are "
		    "numbers");
	while (!bpf_map_get_next_key(fd, before, &key)) {
		__u64 ns = 0;

		before = &key;
		if (!bpf_map_lookup_elem(fd, &key, &ns) && ns >= 500)
			put_line(out, s, &symbols, &key, (ns + 500) / 1000);
	}
	kernel_symbols_free(&symbols);
}

void stacks_waits(const struct stacks *s, struct wait_sum waits[WAITERS], __u64 *lost)
{
	memcpy(waits, s->skel->bss->wait_sums, WAITERS * sizeof(waits[0]));
	*lost = s->skel->bss->stacks_lost;
}

void stacks_end(struct stacks *s)
{
	while (s->ncpus)
		bpf_link__destroy(s->links[--s->ncpus]);
	free(s->links);
	s->links = NULL;
	while (s->nprocesses)
		free(s->processes[--s->nprocesses].text);
	free(s->processes);
	s->processes = NULL;
}
