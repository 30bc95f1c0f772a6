// SPDX-License-Identifier: GPL-2.0-only
/* The report as JSON: schema rocelab.rxecpu/1, docs/formats/rxecpu.md. */
#include "report.h"

#include "json.h"

static void put_session(struct json *j, const struct session *s)
{
	static const char *const kinds[] = {
		[DRIVER_ABSENT] = "absent",
		[DRIVER_STOCK] = "stock",
		[DRIVER_INSTRUMENTED] = "instrumented",
	};

	json_string(j, "schema", "rocelab.rxecpu/1");
	json_string(j, "node", s->node);
	json_string(j, "kernel", s->driver.kernel);
	json_open_object(j, "driver");
	json_string(j, "kind", kinds[s->driver.kind]);
	json_string(j, "version", s->driver.version[0] ? s->driver.version : NULL);
	json_string(j, "srcversion", s->driver.srcversion[0] ? s->driver.srcversion : NULL);
	json_close_object(j);
	json_open_array(j, "missing");
	for (int i = 0; i < FEATURES; i++) {
		if (!s->features[i])
			json_string(j, NULL, feature_names[i]);
	}
	json_close_array(j);
	json_bool(j, "benchmark", s->has_benchmark);
	json_string(j, "accelerator", s->accelerator);
	json_u64(j, "start_wall_ns", s->start_wall_ns);
	json_u64(j, "start_ns", s->start_ns);
	json_u64(j, "duration_ns", s->end_ns - s->start_ns);
	json_u64(j, "cpus", s->ncpus);
}

static void put_cost(struct json *j, const struct session *s)
{
	__u64 sum[ACCOUNTS];

	times_sum(s, sum);
	/* the sign is why this is no json_u64() */
	json_double(j, "unaccounted_ns", unaccounted(s, sum, s->end_ns - s->start_ns));
	json_u64(j, "events", s->events);
	json_double(j, "event_ns", s->event_ns);
	json_u64(j, "self_ns", s->self_ns);
	json_u64(j, "lost", session_missed(s));
	json_u64(j, "late", s->late);
	json_open_array(j, "programs");
	for (int i = 0; i < s->nprograms; i++) {
		const struct program_stats *p = &s->programs[i];

		json_open_object(j, NULL);
		json_string(j, "name", p->name);
		if (s->bpf_stats) {
			json_u64(j, "runs", p->runs);
			json_u64(j, "run_ns", p->run_ns);
		}
		json_u64(j, "missed", p->missed);
		json_close_object(j);
	}
	json_close_array(j);
}

/* cpu below 0: of all */
static void put_rows(struct json *j, int cpu, const __u64 ns[ACCOUNTS])
{
	for (int a = 0; a < ACCOUNTS; a++) {
		if (!ns[a])
			continue;
		json_open_object(j, NULL);
		if (cpu >= 0)
			json_u64(j, "cpu", cpu);
		json_string(j, "context", context_names[account_context(a)]);
		json_string(j, "owner", account_owner(a));
		json_u64(j, "ns", ns[a]);
		json_close_object(j);
	}
}

static void put_series(struct json *j, const struct session *s)
{
	json_open_array(j, "intervals");
	for (int i = 0; i < s->intervals; i++) {
		const struct interval *interval = &s->series[i];

		json_open_object(j, NULL);
		json_u64(j, "start_ns", interval->start_ns);
		json_u64(j, "duration_ns", interval->end_ns - interval->start_ns);
		json_open_array(j, "rows");
		put_rows(j, -1, interval->ns);
		json_close_array(j);
		json_close_object(j);
	}
	json_close_array(j);
}

void print_json(FILE *out, const struct session *s)
{
	struct json j = {.out = out};

	json_open_object(&j, NULL);
	put_session(&j, s);
	put_cost(&j, s);
	json_open_array(&j, "rows");
	for (int i = 0; i < s->ncpus; i++)
		put_rows(&j, s->cpus[i].cpu, s->cpus[i].ns);
	json_close_array(&j);
	if (s->series)
		put_series(&j, s);
	json_close_object(&j);
	json_end(&j);
}
