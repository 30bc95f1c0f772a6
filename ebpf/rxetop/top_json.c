// SPDX-License-Identifier: GPL-2.0-only
/* The report as JSON: schema rocelab.rxetop/1, docs/formats/rxetop.md. */
#include <stdlib.h>
#include <string.h>

#include "drop.h"
#include "json.h"
#include "qp_group.h"
#include "session_print.h"
#include "top_report.h"

static void put_quantiles(struct json *j, const char *key, const struct quantiles *q)
{
	json_open_object(j, key);
	json_u64(j, "count", q->count);
	if (q->count) {
		json_double(j, "mean_ns", q->mean);
		json_u64(j, "p50_ns", q->p50);
		json_u64(j, "p99_ns", q->p99);
		json_u64(j, "p999_ns", q->p999);
	}
	json_close_object(j);
}

static void put_ways(struct json *j, const char *key, const __u64 counts[WAYS])
{
	json_open_object(j, key);
	json_u64(j, "sent", counts[SENT]);
	json_u64(j, "received", counts[RECEIVED]);
	json_close_object(j);
}

static void put_rates(struct json *j, const char *key, const double rates[WAYS])
{
	json_open_object(j, key);
	json_double(j, "sent", rates[SENT]);
	json_double(j, "received", rates[RECEIVED]);
	json_close_object(j);
}

static void put_drops(struct json *j, const char *key, const __u64 drops[DROP_PLACES])
{
	json_open_object(j, key);
	for (int i = 0; i < DROP_PLACES; i++) {
		if (drops[i])
			json_u64(j, drop_name(i), drops[i]);
	}
	json_close_object(j);
}

static void put_identity(struct json *j, const struct qp_row *r)
{
	json_string(j, "dev", r->dev);
	json_u64(j, "qpn", r->key.qpn);
	json_string(j, "type", r->listed ? rdma_qp_type_name(r->info.type) : NULL);
	json_string(j, "state", r->listed ? rdma_qp_state_name(r->info.state) : NULL);
	if (r->info.pid)
		json_u64(j, "pid", r->info.pid);
	else
		json_string(j, "pid", NULL);
	json_string(j, "command", r->comm[0] ? r->comm : NULL);
	json_open_object(j, "peer");
	json_string(j, "address", r->peer[0] ? r->peer : NULL);
	if (r->peer_qpn)
		json_u64(j, "qpn", r->peer_qpn);
	else
		json_string(j, "qpn", NULL);
	json_close_object(j);
}

static void put_group(struct json *j, const struct qp_row *r)
{
	json_string(j, "group", r->group);
	json_u64(j, "qps", r->qps);
}

static void put_row(struct json *j, const struct report *report, const struct qp_row *r)
{
	json_open_object(j, NULL);
	if (r->qps)
		put_group(j, r);
	else
		put_identity(j, r);
	put_rates(j, "packets_per_s", r->packets);
	put_rates(j, "bytes_per_s", r->bytes);
	json_double(j, "requests_per_s", r->requests);
	put_quantiles(j, "request_latency", &r->work);
	json_open_object(j, "total");
	put_ways(j, "packets", r->total_packets);
	put_ways(j, "bytes", r->total_bytes);
	json_u64(j, "requests", r->total_requests);
	json_u64(j, "requests_not_followed", r->not_followed);
	json_u64(j, "requests_with_error", r->with_error);
	if (report->session.driver.kind == DRIVER_INSTRUMENTED) {
		json_u64(j, "task_ns", r->total_task_ns);
		json_u64(j, "retransmissions", r->retransmits);
		json_u64(j, "timeouts", r->timeouts);
		put_ways(j, "naks", r->naks);
		put_ways(j, "rnr_naks", r->rnrs);
		put_drops(j, "drops", r->drops);
	}
	json_close_object(j);
	if (report->session.driver.kind == DRIVER_INSTRUMENTED) {
		json_double(j, "cpu", r->cpu);
		put_quantiles(j, "stage_time", &r->stage);
	}
	json_close_object(j);
}

/* only what was given */
static void put_places(struct json *j, const struct report *r, const struct config *config)
{
	const struct place_options *places = &config->places;
	char pids[PLACE_PIDS_TEXT];

	if (places->npids)
		json_string(j, "pid", place_options_pids(places, pids));
	if (places->cgroup)
		json_string(j, "cgroup", places->cgroup);
	if (places->netns)
		json_string(j, "netns", places->netns);
	if (place_options_given(places))
		json_u64(j, "hidden", r->list.hidden);
}

static void put_head(struct json *j, const struct report *r, const struct config *config)
{
	const char *missing;
	char name[STAGE_NAME];

	session_json_place(j, &r->session, "rocelab.rxetop/1");
	json_open_array(j, "missing");
	for (int i = 0; (missing = report_missing(r, i)); i++)
		json_string(j, NULL, missing);
	json_close_array(j);
	session_json_time(j, &r->session);
	json_u64(j, "look", r->number);
	json_double(j, "interval_s", r->list.seconds);
	if (r->session.driver.kind == DRIVER_INSTRUMENTED) {
		stage_choice_name(config->stage, name);
		json_string(j, "stage", name);
	}
	if (config->one_of > 1)
		json_u64(j, "one_of", config->one_of);
	put_places(j, r, config);
	session_json_programs(j, &r->session);
	json_u64(j, "lost", r->lost + r->missed);
}

void print_json(FILE *out, const struct report *report, const struct config *config)
{
	struct json j = {.out = out};
	const struct selection *selection = &config->selection;
	bool grouped = selection->group != GROUP_NONE;
	struct qp_groups groups = {};
	size_t n;
	const struct qp_row **rows = rows_shown(&groups, &report->list, selection, &n);

	json_open_object(&j, NULL);
	put_head(&j, report, config);
	put_drops(&j, "other_drops", report->other_drops);
	if (grouped)
		json_string(&j, "group_by", group_key_name(selection->group));
	json_open_array(&j, grouped ? "groups" : "qps");
	for (size_t i = 0; rows && i < n; i++)
		put_row(&j, report, rows[i]);
	json_close_array(&j);
	json_close_object(&j);
	json_end(&j);
	free(rows);
	qp_groups_free(&groups);
}
