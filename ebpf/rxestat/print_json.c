// SPDX-License-Identifier: GPL-2.0-only
/* The report as JSON: schema rocelab.rxestat/1, docs/formats/rxestat.md. */
#include "report.h"

#include <math.h>

#include "bth.h"
#include "json.h"
#include "size_class.h"

static void put_key(struct json *j, const struct session *s, const struct group *g)
{
	char name[RDMA_DEV_NAME_LEN];

	json_string(j, "dev", dev_name(s, key_dev(g->key), name));
	json_string(j, "dir", g->dir == DIR_TX ? "tx" : "rx");
	json_string(j, "net", net_name(key_net(g->key)));
	json_string(j, "service", bth_service_name(s->service[key_class(g->key)]));
	json_string(j, "opcode_class", bth_class_name(s->class[key_class(g->key)]));
	json_string(j, "size_class", size_class_name(key_size(g->key)));
}

static void put_row(struct json *j, const struct session *s, const struct group *g, int stage)
{
	const struct hist *h = &g->stage[stage];

	json_open_object(j, NULL);
	put_key(j, s, g);
	json_string(j, "stage", stage_names[g->dir][stage]);
	json_u64(j, "count", h->count);
	json_u64(j, "sum_ns", h->sum);
	json_u64(j, "min_ns", h->min);
	json_u64(j, "max_ns", h->max);
	json_double(j, "mean_ns", hist_mean(h));
	/* the stock driver's stages contain probes of unknown cost: no netted mean */
	json_double(j, "netted_mean_ns",
		    s->driver.kind == DRIVER_INSTRUMENTED ? hist_mean(h) - s->cost.clock : NAN);
	json_u64(j, "p50_ns", hist_quantile(h, 0.5));
	json_u64(j, "p99_ns", hist_quantile(h, 0.99));
	json_open_array(j, "buckets");
	for (int b = 0; b < LOGLIN_BUCKETS; b++) {
		if (!h->bucket[b])
			continue;
		json_open_array(j, NULL);
		json_u64(j, NULL, loglin_upper(b));
		json_u64(j, NULL, h->bucket[b]);
		json_close_array(j);
	}
	json_close_array(j);
	json_close_object(j);
}

static void put_packets(struct json *j, const struct session *s, const struct group *g,
			const char *event, const struct counts *c)
{
	if (!c->packets && !c->switched)
		return;
	json_open_object(j, NULL);
	put_key(j, s, g);
	json_string(j, "event", event);
	json_u64(j, "count", c->packets + c->switched);
	json_u64(j, "switched", c->switched);
	json_u64(j, "loopback", c->loopback);
	json_close_object(j);
}

static void put_session(struct json *j, const struct session *s)
{
	json_string(j, "schema", "rocelab.rxestat/1");
	json_string(j, "node", s->node);
	json_string(j, "kernel", s->driver.kernel);
	json_open_object(j, "driver");
	json_string(j, "kind", s->driver.kind == DRIVER_INSTRUMENTED ? "instrumented" : "stock");
	json_string(j, "version", s->driver.version[0] ? s->driver.version : NULL);
	json_string(j, "srcversion", s->driver.srcversion[0] ? s->driver.srcversion : NULL);
	json_close_object(j);
	json_open_array(j, "missing_stages");
	for (int dir = 0; dir < DIRECTIONS; dir++) {
		for (int i = 0; i < stage_count[dir]; i++) {
			char name[16];

			if (stage_can_be_had(s->driver.kind, dir, i))
				continue;
			snprintf(name, sizeof(name), "%s.%s", dir == DIR_TX ? "tx" : "rx",
				 stage_names[dir][i]);
			json_string(j, NULL, name);
		}
	}
	json_close_array(j);
	json_string(j, "accelerator", s->accelerator);
	json_u64(j, "start_wall_ns", s->start_wall_ns);
	json_u64(j, "start_ns", s->start_ns);
	json_u64(j, "duration_ns", s->end_ns - s->start_ns);
	if (s->interval)
		json_u64(j, "interval", s->interval);
}

static void put_cost(struct json *j, const struct session *s)
{
	json_double(j, "clock_ns", s->cost.clock);
	json_open_object(j, "probe_ns");
	json_double(j, "tx", s->cost.tx);
	json_double(j, "xmit", s->cost.xmit);
	json_double(j, "rx", s->cost.rx);
	json_double(j, "done", s->cost.done);
	json_close_object(j);
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
	json_u64(j, "lost", s->lost + session_missed(s));
	json_u64(j, "lost_no_cell", s->lost);
	json_u64(j, "lost_nested", session_missed(s));
}

static void each_group(struct json *j, const struct session *s, const struct groups *groups,
		       void (*put)(struct json *, const struct session *, const struct group *))
{
	for (int dir = 0; dir < DIRECTIONS; dir++) {
		for (int key = 0; key < KEYS; key++) {
			if (groups->at[dir][key])
				put(j, s, groups->at[dir][key]);
		}
	}
}

static void put_group_packets(struct json *j, const struct session *s, const struct group *g)
{
	put_packets(j, s, g, g->dir == DIR_TX ? "tx" : "rx", &g->seen);
	put_packets(j, s, g, "done", &g->done);
}

static void put_group_rows(struct json *j, const struct session *s, const struct group *g)
{
	for (int i = 0; i < stage_count[g->dir]; i++) {
		if (g->stage[i].count)
			put_row(j, s, g, i);
	}
}

void print_json(FILE *out, const struct session *s, const struct groups *groups)
{
	struct json j = {.out = out};

	json_open_object(&j, NULL);
	put_session(&j, s);
	put_cost(&j, s);
	json_open_array(&j, "packets");
	each_group(&j, s, groups, put_group_packets);
	json_close_array(&j);
	json_open_array(&j, "rows");
	each_group(&j, s, groups, put_group_rows);
	json_close_array(&j);
	json_close_object(&j);
	json_end(&j);
}
