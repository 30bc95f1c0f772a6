// SPDX-License-Identifier: GPL-2.0-only
/* The report as tables of 80 columns. */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bth.h"
#include "size_class.h"

#define RULE "--------------------------------------------------------------------------------"

static double seconds(__u64 ns)
{
	return ns / 1e9;
}

static void print_head(FILE *out, const struct session *s)
{
	fprintf(out, "\nrxestat on %s: %.3f s", s->node, seconds(s->end_ns - s->start_ns));
	if (s->interval)
		fprintf(out, " (interval %u)", s->interval);
	fprintf(out, ", kernel %s\n", s->driver.kernel);
	if (s->driver.version[0])
		fprintf(out, "driver: rdma_rxe %s\n", s->driver.version);
	if (s->driver.kind == DRIVER_STOCK)
		fprintf(out,
			"stock driver: stages between its functions, each with two probes in it;\n"
			"  net contains route; no wqe, and of received packets no queue, exec,\n"
			"  copy, cqe, reply\n");
	if (!strcmp(s->accelerator, "tcg"))
		fprintf(out,
			"emulated processor (TCG): the figures count its work, not real time\n");
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

/* a stage that not every packet passes through counts by its share */
static double per_packet(const struct group *g, int stage)
{
	bool done = g->dir == DIR_RX && stage >= RX_DONE;
	__u64 packets = done ? g->done.packets : g->seen.packets;

	return packets ? (double)g->stage[stage].sum / packets : 0;
}

static void print_counts(FILE *out, const char *what, const struct counts *c)
{
	if (!c->packets && !c->switched)
		return;
	fprintf(out, "  %s: %" PRIu64 " packets", what, (uint64_t)(c->packets + c->switched));
	if (c->loopback)
		fprintf(out, ", %" PRIu64 " looped back", (uint64_t)c->loopback);
	if (c->switched)
		fprintf(out, ", %" PRIu64 " left out (task switched)", (uint64_t)c->switched);
	fputc('\n', out);
}

static void print_group(FILE *out, const struct session *s, const struct group *g)
{
	char name[RDMA_DEV_NAME_LEN];
	double capsule = 0, total = 0;

	fprintf(out, "\n%s %s %s %s_%s, %s bytes\n", dev_name(s, key_dev(g->key), name),
		g->dir == DIR_TX ? "tx" : "rx", net_name(key_net(g->key)),
		bth_service_name(s->service[key_class(g->key)]),
		bth_class_name(s->class[key_class(g->key)]), size_class_name(key_size(g->key)));
	print_counts(out, g->dir == DIR_TX ? "sent" : "arrived", &g->seen);
	if (g->done.packets + g->done.switched != g->seen.packets + g->seen.switched ||
	    g->done.switched)
		print_counts(out, "finished", &g->done);
	if (!g->seen.packets && !g->done.packets)
		return; /* all left out */
	fprintf(out, "  %-16s %11s %11s %11s %11s %11s\n", "stage", "count", "mean ns", "p50",
		"p99", "max");
	for (int i = 0; i < stage_count[g->dir]; i++) {
		const struct hist *h = &g->stage[i];

		if (!h->count)
			continue;
		print_stage(out, stage_names[g->dir][i], h);
		total += per_packet(g, i);
		if (stage_is_capsule(g->dir, i))
			capsule += per_packet(g, i);
	}
	print_sum(out, g->dir == DIR_TX ? "= encapsulation" : "= decapsulation", capsule);
	print_sum(out, "= all, per packet", total);
}

static void print_foot(FILE *out, const struct session *s)
{
	const struct calibration *c = &s->cost;

	fprintf(out, "\n" RULE "\n");
	fprintf(out, "encapsulation = bth + route + net + icrc; decapsulation = parse + icrc\n");
	if (s->driver.kind == DRIVER_INSTRUMENTED)
		fprintf(out,
			"own cost: %.1f ns of each stage are its clock read; a packet's probes take"
			"\n  tx %.0f + xmit %.0f, rx %.0f + done %.0f ns, without the way to them\n",
			c->clock, c->tx, c->xmit, c->rx, c->done);
	else
		fprintf(out, "own cost: a clock read takes %.1f ns; see --bpf-stats\n", c->clock);
	for (int i = 0; i < s->nprograms && s->bpf_stats; i++) {
		const struct program_stats *p = &s->programs[i];

		if (p->runs)
			fprintf(out, "  %-24s %12" PRIu64 " runs, %8.0f ns each\n", p->name,
				(uint64_t)p->runs, (double)p->run_ns / p->runs);
	}
	fprintf(out, "lost: %" PRIu64 " packets (%" PRIu64 " without a cell, %" PRIu64 " nested)\n",
		(uint64_t)(s->lost + session_missed(s)), (uint64_t)s->lost,
		(uint64_t)session_missed(s));
}

void print_table(FILE *out, const struct session *s, const struct groups *groups)
{
	bool any = false;

	print_head(out, s);
	for (int dir = 0; dir < DIRECTIONS; dir++) {
		for (int key = 0; key < KEYS; key++) {
			if (groups->at[dir][key]) {
				print_group(out, s, groups->at[dir][key]);
				any = true;
			}
		}
	}
	if (!any)
		fprintf(out, "\nno packet was seen\n");
	print_foot(out, s);
}
