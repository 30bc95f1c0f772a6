// SPDX-License-Identifier: GPL-2.0-only
/* The report as JSON: schema rocelab.rxestat/1, docs/formats/rxestat.md. */
#include "stat_report.h"

#include <math.h>

#include "bth.h"
#include "json.h"
#include "session_print.h"
#include "size_class.h"
#include "stat_hist.h"

static void put_key(struct json *j, const struct report *r, const struct group *g)
{
	char name[RDMA_DEV_NAME_LEN];

	if (r->owners.by)
		json_string(j, "group", owners_name(&r->owners, g->owner));
	json_string(j, "dev", dev_name(r, key_dev(g->key), name));
	json_string(j, "dir", direction_name(g->dir));
	json_string(j, "net", net_name(key_net(g->key)));
	json_string(j, "service", bth_service_name(r->service[key_class(g->key)]));
	json_string(j, "opcode_class", bth_class_name(r->class[key_class(g->key)]));
	json_string(j, "size_class", size_class_name(key_size(g->key)));
}

static void put_row(struct json *j, const struct report *r, const struct group *g, int stage)
{
	const struct hist *h = &g->stage[stage];

	json_open_object(j, NULL);
	put_key(j, r, g);
	json_string(j, "stage", stages[g->dir][stage].name);
	put_sums(j, h);
	/* the stock driver's stages contain probes of unknown cost: no netted mean */
	json_double(j, "netted_mean_ns",
		    r->session.driver.kind == DRIVER_INSTRUMENTED ? hist_mean(h) - r->cost.clock
								  : NAN);
	if (r->sample.one_of > 1)
		json_double(j, "mean_error_ns", hist_mean_error(h));
	put_quantiles(j, h);
	json_close_object(j);
}

static void put_packets(struct json *j, const struct report *r, const struct group *g,
			const char *event, const struct counts *c)
{
	if (!c->packets && !c->switched)
		return;
	json_open_object(j, NULL);
	put_key(j, r, g);
	json_string(j, "event", event);
	json_u64(j, "count", c->packets + c->switched);
	json_u64(j, "switched", c->switched);
	json_u64(j, "slept", c->slept);
	json_u64(j, "loopback", c->loopback);
	json_close_object(j);
}

/* what selects packets, as it was given */
static void put_filter(struct json *j, const struct packet_filter *f)
{
	char pids[PLACE_PIDS_TEXT];
	const struct {
		const char *name, *value;
	} rows[] = {
		{"device", f->device},
		{"pid", place_options_pids(&f->places, pids)},
		{"cgroup", f->places.cgroup},
		{"netns", f->places.netns},
		{"direction", f->tx == f->rx ? NULL
			      : f->tx	     ? "tx"
					     : "rx"},
		{"opcode", f->opcodes},
	};

	json_open_object(j, "filter");
	if (f->qpn)
		json_u64(j, "qpn", f->qpn);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].value)
			json_string(j, rows[i].name, rows[i].value);
	}
	json_close_object(j);
}

static void put_head(struct json *j, const struct report *r)
{
	session_json_place(j, &r->session, "rocelab.rxestat/1");
	json_open_array(j, "missing_stages");
	for (int dir = 0; dir < DIRECTIONS; dir++) {
		for (int i = 0; i < stage_count[dir]; i++) {
			char name[16];

			if (stage_is_there(&r->session.driver, dir, i))
				continue;
			snprintf(name, sizeof(name), "%s.%s", direction_name(dir),
				 stages[dir][i].name);
			json_string(j, NULL, name);
		}
	}
	json_close_array(j);
	put_filter(j, r->filter);
	session_json_time(j, &r->session);
	if (r->interval)
		json_u64(j, "interval", r->interval);
}

static void put_sample(struct json *j, const struct report *r)
{
	if (r->sample.one_of <= 1)
		return;
	json_open_object(j, "sample");
	json_u64(j, "one_of", r->sample.one_of);
	if (r->totals.known) {
		json_u64(j, "sent_pkts", r->totals.sent);
		json_u64(j, "rcvd_pkts", r->totals.received);
	}
	json_close_object(j);
}

static void put_events(struct json *j, const struct report *r)
{
	if (!r->event) {
		json_string(j, "kernel_events", NULL);
		return;
	}
	json_open_object(j, "kernel_events");
	json_string(j, "event", r->event);
	json_u64(j, "count", llround(r->events.value));
	json_double(j, "counted_share", r->events.share);
	json_close_object(j);
}

static void put_cost(struct json *j, const struct report *r)
{
	json_double(j, "clock_ns", r->cost.clock);
	json_open_object(j, "probe_ns");
	json_double(j, "tx", r->cost.tx);
	json_double(j, "xmit", r->cost.xmit);
	json_double(j, "rx", r->cost.rx);
	json_double(j, "done", r->cost.done);
	json_close_object(j);
	session_json_programs(j, &r->session);
	json_u64(j, "lost", r->lost + packets_missed(r));
	json_u64(j, "lost_no_cell", r->lost);
	json_u64(j, "lost_nested", packets_missed(r));
}

static void put_losses(struct json *j, const struct report *r)
{
	unsigned int number[OWNER_GROUPS];
	int n = owners_sorted(&r->owners, number);
	char name[RDMA_DEV_NAME_LEN];
	struct loss loss;

	if (!r->losses.known)
		return;
	json_open_array(j, "losses");
	for (int i = 0; i < n; i++) {
		for (int at = 0; losses_next(&r->losses, number[i], &at, &loss);) {
			json_open_object(j, NULL);
			if (r->owners.by)
				json_string(j, "group", owners_name(&r->owners, number[i]));
			json_string(j, "dev", loss_dev_name(r, loss.place, name));
			json_string(j, "event", loss.event);
			json_string(j, "reason", loss.reason);
			json_u64(j, "count", loss.count);
			json_close_object(j);
		}
	}
	json_close_array(j);
	json_u64(j, "losses_missed", losses_missed(r));
}

static void each_group(struct json *j, const struct report *r, const struct groups *groups,
		       void (*put)(struct json *, const struct report *, const struct group *))
{
	unsigned int number[OWNER_GROUPS];
	int n = owners_sorted(&r->owners, number);

	for (int o = 0; o < n; o++) {
		for (int i = 0; i < DIRECTIONS * KEYS; i++) {
			const struct group *g = groups_at(groups, number[o], i / KEYS, i % KEYS);

			if (g)
				put(j, r, g);
		}
	}
}

static void put_group_packets(struct json *j, const struct report *r, const struct group *g)
{
	put_packets(j, r, g, direction_name(g->dir), &g->seen);
	put_packets(j, r, g, "done", &g->done);
}

static void put_group_rows(struct json *j, const struct report *r, const struct group *g)
{
	for (int i = 0; i < stage_count[g->dir]; i++) {
		if (g->stage[i].count)
			put_row(j, r, g, i);
	}
}

void print_json(FILE *out, const struct report *r, const struct groups *groups)
{
	struct json j = {.out = out};

	json_open_object(&j, NULL);
	put_head(&j, r);
	put_sample(&j, r);
	put_owners_json(&j, &r->owners);
	put_events(&j, r);
	put_cost(&j, r);
	put_losses(&j, r);
	json_open_array(&j, "packets");
	each_group(&j, r, groups, put_group_packets);
	json_close_array(&j);
	json_open_array(&j, "rows");
	each_group(&j, r, groups, put_group_rows);
	json_close_array(&j);
	put_work_json(&j, &r->work, &r->owners);
	json_close_object(&j);
	json_end(&j);
}
