// SPDX-License-Identifier: GPL-2.0-only
#include "cpu_sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rxecpu.skel.h"

/* "0-3,8\n" */
int sampler_list(struct sampler *s)
{
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	int first, last;
	char next;

	s->ncpus = 0;

	if (!f)
		return -errno;
	while (fscanf(f, "%d", &first) == 1) {
		last = first;
		next = fgetc(f);
		if (next == '-') {
			if (fscanf(f, "%d", &last) != 1)
				break;
			next = fgetc(f);
		}
		for (int cpu = first; cpu <= last && s->ncpus < s->possible; cpu++)
			s->cpu[s->ncpus++] = cpu;
		if (next != ',')
			break;
	}
	fclose(f);
	return s->ncpus ? 0 : -EIO;
}

int sampler_open(struct sampler *s, struct rxecpu_bpf *skel)
{
	s->skel = skel;
	s->possible = libbpf_num_possible_cpus();
	if (s->possible < 0)
		return s->possible;
	s->cpu = calloc(s->possible, sizeof(*s->cpu));
	s->states = calloc(s->possible, sizeof(*s->states));
	return s->cpu && s->states ? sampler_list(s) : -ENOMEM;
}

void sampler_close(struct sampler *s)
{
	free(s->cpu);
	free(s->states);
	s->cpu = NULL;
	s->states = NULL;
}

/* sends an interrupt to that CPU; on our own it is a plain call */
static int run_on(const struct sampler *s, int cpu, enum sample_action action)
{
	__u64 args[1] = {action};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);

	return bpf_prog_test_run_opts(bpf_program__fd(s->skel->progs.sample), &opts) ? -errno : 0;
}

static int run_on_all(const struct sampler *s, enum sample_action action)
{
	int err = 0;

	for (int i = 0; i < s->ncpus && !err; i++)
		err = run_on(s, s->cpu[i], action);
	return err;
}

int sampler_begin(struct sampler *s)
{
	__u32 zero = 0;

	memset(s->states, 0, s->possible * sizeof(*s->states));
	if (bpf_map__update_elem(s->skel->maps.cpus, &zero, sizeof(zero), s->states,
				 s->possible * sizeof(*s->states), BPF_ANY))
		return -errno;
	return run_on_all(s, SAMPLE_BEGIN);
}

int sampler_take(struct sampler *s, bool last)
{
	__u32 zero = 0;
	int err = run_on_all(s, last ? SAMPLE_FREEZE : SAMPLE_READ);

	if (err)
		return err;
	return bpf_map__lookup_elem(s->skel->maps.cpus, &zero, sizeof(zero), s->states,
				    s->possible * sizeof(*s->states), 0)
		       ? -errno
		       : 0;
}

void sampler_times(const struct sampler *s, struct times *times)
{
	for (int i = 0; i < s->ncpus; i++) {
		times[i].cpu = s->cpu[i];
		memcpy(times[i].ns, s->states[s->cpu[i]].sample, sizeof(times[i].ns));
		memcpy(times[i].stretches, s->states[s->cpu[i]].stretches,
		       sizeof(times[i].stretches));
	}
}

void sampler_unsampled(const struct sampler *s, __u64 ns[ACCOUNTS])
{
	memset(ns, 0, ACCOUNTS * sizeof(*ns));
	for (int i = 0; i < s->ncpus; i++) {
		const struct cpu_state *cpu = &s->states[s->cpu[i]];

		for (int a = CONTEXT_USER * OWNERS; a < ACCOUNTS; a++)
			ns[a] += cpu->sample[a] - cpu->sampled[a];
	}
}

static __u64 mean(const struct sampler *s, size_t field)
{
	__u64 first = 0;
	__s64 apart = 0;

	for (int i = 0; i < s->ncpus; i++) {
		const char *state = (const char *)&s->states[s->cpu[i]];
		__u64 stamp = *(const __u64 *)(state + field);

		first = first ?: stamp;
		apart += (__s64)(stamp - first);
	}
	return first + apart / s->ncpus;
}

void sampler_window(const struct sampler *s, __u64 *start_ns, __u64 *end_ns)
{
	*start_ns = mean(s, offsetof(struct cpu_state, start));
	*end_ns = mean(s, offsetof(struct cpu_state, end));
}

void sampler_events(const struct sampler *s, __u64 *events, __u64 *late)
{
	*events = *late = 0;
	for (int i = 0; i < s->ncpus; i++) {
		const struct cpu_state *cpu = &s->states[s->cpu[i]];

		for (int a = 0; a < ACCOUNTS; a++)
			*events += cpu->stretches[a];
		*events += cpu->late;
		*late += cpu->late;
	}
}
