// SPDX-License-Identifier: GPL-2.0-only
/* The report as JSON: schema rocelab.rxecpu/1, docs/formats/rxecpu.md. */
#include "cpu_report.h"

#include "json.h"
#include "session_print.h"

static void put_head(struct json *j, const struct report *r)
{
	session_json_place(j, &r->session, "rocelab.rxecpu/1");
	json_open_array(j, "missing");
	for (int i = 0; i < FEATURES; i++) {
		if (!r->features[i])
			json_string(j, NULL, feature_names[i]);
	}
	json_close_array(j);
	json_bool(j, "benchmark", r->has_benchmark);
	session_json_time(j, &r->session);
	json_u64(j, "cpus", r->ncpus);
}

static void put_cost(struct json *j, const struct report *r)
{
	__u64 sum[ACCOUNTS];

	times_sum(r, sum);
	/* the sign is why this is no json_u64() */
	json_double(j, "unaccounted_ns",
		    unaccounted(r, sum, r->session.end_ns - r->session.start_ns));
	json_u64(j, "events", r->events);
	json_double(j, "event_ns", r->event_ns);
	json_u64(j, "self_ns", r->self_ns);
	json_u64(j, "lost", session_missed(&r->session, NULL));
	json_u64(j, "late", r->late);
	session_json_programs(j, &r->session);
}

static void put_waits(struct json *j, const struct report *r)
{
	__u64 unsampled = 0;

	json_open_array(j, "run_queue");
	for (int i = 0; i < WAITERS; i++) {
		json_open_object(j, NULL);
		json_string(j, "waiter", waiter_names[i]);
		json_u64(j, "count", r->waits[i].count);
		json_u64(j, "sum_ns", r->waits[i].sum);
		json_u64(j, "max_ns", r->waits[i].max);
		json_close_object(j);
	}
	json_close_array(j);
	json_u64(j, "stacks_lost", r->stacks_lost);
	for (int a = 0; a < ACCOUNTS; a++)
		unsampled += r->unsampled[a];
	json_u64(j, "unsampled_ns", unsampled);
}

/* cpu below 0: of all; stretches may be NULL */
static void put_rows(struct json *j, int cpu, const __u64 ns[ACCOUNTS],
		     const __u64 stretches[ACCOUNTS])
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
		if (stretches)
			json_u64(j, "stretches", stretches[a]);
		json_close_object(j);
	}
}

static void put_series(struct json *j, const struct report *r)
{
	json_open_array(j, "intervals");
	for (int i = 0; i < r->intervals; i++) {
		const struct interval *interval = &r->series[i];

		json_open_object(j, NULL);
		json_u64(j, "start_ns", interval->start_ns);
		json_u64(j, "duration_ns", interval->end_ns - interval->start_ns);
		json_open_array(j, "rows");
		put_rows(j, -1, interval->ns, NULL);
		json_close_array(j);
		json_close_object(j);
	}
	json_close_array(j);
}

void print_json(FILE *out, const struct report *r)
{
	struct json j = {.out = out};

	json_open_object(&j, NULL);
	put_head(&j, r);
	put_cost(&j, r);
	if (r->has_stacks)
		put_waits(&j, r);
	json_open_array(&j, "rows");
	for (int i = 0; i < r->ncpus; i++)
		put_rows(&j, r->cpus[i].cpu, r->cpus[i].ns, r->cpus[i].stretches);
	json_close_array(&j);
	if (r->series)
		put_series(&j, r);
	json_close_object(&j);
	json_end(&j);
}
