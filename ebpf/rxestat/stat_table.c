// SPDX-License-Identifier: GPL-2.0-only
/* The report as tables of 80 columns. */
#include "stat_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bth.h"
#include "session_print.h"
#include "size_class.h"
#include "stat_hist.h"

#define RULE "--------------------------------------------------------------------------------"

static double seconds(__u64 ns)
{
	return ns / 1e9;
}

static void print_stock(FILE *out, const struct report *r)
{
	fprintf(out, "stock driver: stages between its functions, each with two probes in it;\n"
		     "  net contains route. Missing:");
	for (int dir = 0; dir < DIRECTIONS; dir++) {
		for (int i = 0; i < stage_count[dir]; i++) {
			if (!stage_is_there(&r->session.driver, dir, i))
				fprintf(out, " %s.%s", direction_name(dir), stages[dir][i].name);
		}
	}
	fputc('\n', out);
}

/* what is seen of all, and what follows from it */
static void print_sample(FILE *out, const struct report *r)
{
	fprintf(out, "sample: one of %u packets, chosen by PSN; ", r->sample.one_of);
	if (r->totals.known)
		fprintf(out, "counters: %" PRIu64 " sent, %" PRIu64 " received\n",
			(uint64_t)r->totals.sent, (uint64_t)r->totals.received);
	else
		fprintf(out, "totals unknown, devices changed\n");
	fprintf(out, "  (a mean's error and a number's error: 95 %% confidence)\n");
}

static void print_events(FILE *out, const struct report *r)
{
	fprintf(out, "kernel: %.0f %s on all processors", r->events.value, r->event);
	if (r->events.share < 1)
		fprintf(out, ", from %.0f %% of the time", 100 * r->events.share);
	fputc('\n', out);
}

static void print_head(FILE *out, const struct report *r)
{
	fprintf(out, "\nrxestat on %s: %.3f s", r->session.node,
		seconds(r->session.end_ns - r->session.start_ns));
	if (r->interval)
		fprintf(out, " (interval %u)", r->interval);
	fprintf(out, ", kernel %s\n", r->session.driver.kernel);
	if (r->session.driver.version[0])
		fprintf(out, "driver: rdma_rxe %s\n", r->session.driver.version);
	if (r->event)
		print_events(out, r);
	if (r->session.driver.kind == DRIVER_STOCK)
		print_stock(out, r);
	if (r->sample.one_of > 1)
		print_sample(out, r);
	if (!strcmp(r->session.accelerator, "tcg"))
		fprintf(out,
			"emulated processor (TCG): the figures count its work, not real time\n");
}

/* the largest value of a sample says nothing; its mean has an error */
static void print_sampled_stage(FILE *out, const char *name, const struct hist *h)
{
	double error = hist_mean_error(h);

	fprintf(out, "  %-16s %11" PRIu64 " %11.0f %11" PRIu64 " %11" PRIu64, name,
		(uint64_t)h->count, hist_mean(h), (uint64_t)hist_quantile(h, 0.5),
		(uint64_t)hist_quantile(h, 0.99));
	if (isnan(error))
		fprintf(out, " %11s\n", "-");
	else
		fprintf(out, " %11.0f\n", error);
}

static void print_stage(FILE *out, const char *name, const struct hist *h)
{
	fprintf(out, "  %-16s %11" PRIu64 " %11.0f %11" PRIu64 " %11" PRIu64 " %11u\n", name,
		(uint64_t)h->count, hist_mean(h), (uint64_t)hist_quantile(h, 0.5),
		(uint64_t)hist_quantile(h, 0.99), h->max);
}

static void print_sum(FILE *out, const char *name, double ns)
{
	fprintf(out, "  %-28s %11.0f\n", name, ns);
}

/* a stage that only some packets pass counts by its share */
static double per_packet(const struct group *g, int stage)
{
	bool done = g->dir == DIR_RX && stage >= RX_DONE;
	__u64 packets = done ? g->done.packets : g->seen.packets;

	return packets ? (double)g->stage[stage].sum / packets : 0;
}

static void print_counts(FILE *out, const char *what, const struct counts *c, __u32 one_of)
{
	__u64 seen = c->packets + c->switched;

	if (!seen)
		return;
	fprintf(out, "  %s: %" PRIu64 " packets", what, (uint64_t)seen);
	if (one_of > 1)
		fprintf(out, " of about %" PRIu64 " +- %.0f", (uint64_t)(seen * one_of),
			1.96 * one_of * sqrt(seen * (1 - 1.0 / one_of)));
	if (c->loopback)
		fprintf(out, ", %" PRIu64 " looped back", (uint64_t)c->loopback);
	if (c->switched > c->slept)
		fprintf(out, ", %" PRIu64 " left out (task switched)",
			(uint64_t)(c->switched - c->slept));
	if (c->slept)
		fprintf(out, ", %" PRIu64 " left out (on-demand paging)", (uint64_t)c->slept);
	fputc('\n', out);
}

static void print_group(FILE *out, const struct report *r, const struct group *g)
{
	char name[RDMA_DEV_NAME_LEN];
	double capsule = 0, total = 0;

	fprintf(out, "\n%s %s %s %s_%s, %s bytes\n", dev_name(r, key_dev(g->key), name),
		direction_name(g->dir), net_name(key_net(g->key)),
		bth_service_name(r->service[key_class(g->key)]),
		bth_class_name(r->class[key_class(g->key)]), size_class_name(key_size(g->key)));
	print_counts(out, g->dir == DIR_TX ? "sent" : "arrived", &g->seen, r->sample.one_of);
	if (g->done.packets + g->done.switched != g->seen.packets + g->seen.switched ||
	    g->done.switched)
		print_counts(out, "finished", &g->done, r->sample.one_of);
	if (!g->seen.packets && !g->done.packets)
		return; /* all left out */
	fprintf(out, "  %-16s %11s %11s %11s %11s %11s\n", "stage", "count", "mean ns", "p50",
		"p99", r->sample.one_of > 1 ? "+- mean" : "max");
	for (int i = 0; i < stage_count[g->dir]; i++) {
		const struct hist *h = &g->stage[i];

		if (!h->count)
			continue;
		(r->sample.one_of > 1 ? print_sampled_stage
				      : print_stage)(out, stages[g->dir][i].name, h);
		if (r->histograms)
			print_histogram(out, h);
		total += per_packet(g, i);
		if (stages[g->dir][i].in_capsule)
			capsule += per_packet(g, i);
	}
	print_sum(out, g->dir == DIR_TX ? "= encapsulation" : "= decapsulation", capsule);
	print_sum(out, "= all, per packet", total);
}

/* a sum and its parts */
static void print_capsule(FILE *out, const char *name, enum direction dir)
{
	const char *sign = " = ";

	fputs(name, out);
	for (int i = 0; i < stage_count[dir]; i++) {
		if (!stages[dir][i].in_capsule)
			continue;
		fprintf(out, "%s%s", sign, stages[dir][i].name);
		sign = " + ";
	}
}

/* what went wrong, a number a line */
static bool print_owner_losses(FILE *out, const struct report *r, unsigned int owner)
{
	char name[RDMA_DEV_NAME_LEN];
	struct loss loss;
	bool any = false;

	for (int at = 0; losses_next(&r->losses, owner, &at, &loss); any = true) {
		if (!any && r->owners.by) {
			fputs("\n  ", out);
			print_owner(out, &r->owners, owner);
		}
		fprintf(out, "%s  %-16s %-12s %-16s %11" PRIu64, any ? "" : "\n",
			loss_dev_name(r, loss.place, name) ?: "-", loss.event, loss.reason ?: "",
			(uint64_t)loss.count);
		fputc('\n', out);
	}
	return any;
}

static void print_losses(FILE *out, const struct report *r)
{
	unsigned int number[OWNER_GROUPS];
	int n = owners_sorted(&r->owners, number);
	bool any = false;

	if (!r->losses.known)
		return;
	fprintf(out, "\nlosses");
	if (losses_missed(r))
		fprintf(out, " (%" PRIu64 " more were missed: nested)", (uint64_t)losses_missed(r));
	for (int i = 0; i < n; i++)
		any |= print_owner_losses(out, r, number[i]);
	if (!any)
		fprintf(out, ": none\n");
}

static void print_foot(FILE *out, const struct report *r)
{
	const struct calibration *c = &r->cost;

	fprintf(out, "\n" RULE "\n");
	print_capsule(out, "encapsulation", DIR_TX);
	fputs("; ", out);
	print_capsule(out, "decapsulation", DIR_RX);
	fputc('\n', out);
	if (r->session.driver.kind == DRIVER_INSTRUMENTED)
		fprintf(out,
			"own cost: %.1f ns of each stage are its clock read; a packet's probes take"
			"\n  tx %.0f + xmit %.0f, rx %.0f ns, without the calls\n",
			c->clock, c->tx, isnan(c->xmit) ? 0 : c->xmit, c->rx);
	else
		fprintf(out, "own cost: a clock read takes %.1f ns; see --bpf-stats\n", c->clock);
	session_print_programs(out, &r->session);
	fprintf(out, "lost: %" PRIu64 " packets (%" PRIu64 " without a cell, %" PRIu64 " nested)\n",
		(uint64_t)(r->lost + packets_missed(r)), (uint64_t)r->lost,
		(uint64_t)packets_missed(r));
}

static bool print_groups(FILE *out, const struct report *r, const struct groups *groups,
			 unsigned int owner)
{
	bool any = false;

	for (int i = 0; i < DIRECTIONS * KEYS; i++) {
		const struct group *g = groups_at(groups, owner, i / KEYS, i % KEYS);

		if (!g)
			continue;
		if (!any && r->owners.by) {
			fprintf(out, "\n" RULE "\n");
			print_owner(out, &r->owners, owner);
			fputc('\n', out);
		}
		print_group(out, r, g);
		any = true;
	}
	return any;
}

void print_table(FILE *out, const struct report *r, const struct groups *groups)
{
	unsigned int number[OWNER_GROUPS];
	int n = owners_sorted(&r->owners, number);
	bool any = false;

	print_head(out, r);
	for (int i = 0; i < n; i++)
		any |= print_groups(out, r, groups, number[i]);
	if (!any)
		fprintf(out, "\nno packet was seen\n");
	else if (r->owners.by)
		fprintf(out, "\n" RULE "\n");
	print_losses(out, r);
	print_work_table(out, &r->work, &r->owners, r->histograms);
	print_foot(out, r);
}
