// SPDX-License-Identifier: GPL-2.0-only
#include "top_screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qp_group.h"
#include "text.h"

/* lines made of items, none of which is cut where a line ends */
struct flow {
	FILE *out;
	int width; /* 0: one line */
	int used;
	int lines;
};

static void flow_end(struct flow *f)
{
	if (!f->used)
		return;
	fputc('\n', f->out);
	f->used = 0;
	f->lines++;
}

static void __attribute__((format(printf, 2, 3))) flow_item(struct flow *f, const char *format, ...)
{
	char text[256];
	int length, separator = f->used ? 2 : 0;
	va_list args;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (length >= (int)sizeof(text))
		length = sizeof(text) - 1;
	if (f->width && f->used && f->used + separator + length > f->width) {
		flow_end(f);
		separator = 0;
	}
	fprintf(f->out, "%s%s", separator ? "  " : "", text);
	f->used += separator + length;
}

static void put_place(struct flow *f, const struct report *r)
{
	time_t now = time(NULL);
	struct tm local;
	char clock[16] = "", node[160];

	if (localtime_r(&now, &local))
		strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	text_escaped(node, sizeof(node), r->session.node);
	flow_item(f, "rxetop on %s", node);
	flow_item(f, "%s", clock);
	if (isfinite(r->list.seconds))
		flow_item(f, "%.1f s", r->list.seconds);
	else
		flow_item(f, "looking");
	flow_item(f, "kernel %s", r->session.driver.kernel);
	flow_end(f);
}

static void put_sums(struct flow *f, const struct report *r)
{
	double packets[WAYS] = {}, bytes[WAYS] = {}, requests = 0;
	char a[TEXT_NUMBER], b[TEXT_NUMBER], c[TEXT_NUMBER], d[TEXT_NUMBER], e[TEXT_NUMBER];
	size_t here = 0, active = 0;

	for (size_t i = 0; i < r->list.n; i++) {
		const struct qp_row *row = &r->list.at[i]->row;

		if (row->elsewhere)
			continue;
		here++;
		active += row->counted;
		requests += row->requests;
		for (int way = 0; way < WAYS; way++) {
			packets[way] += row->packets[way];
			bytes[way] += row->bytes[way];
		}
	}
	text_number(a, packets[SENT]);
	text_number(b, packets[RECEIVED]);
	text_number(c, bytes[SENT]);
	text_number(d, bytes[RECEIVED]);
	text_number(e, requests);
	flow_item(f, "queue pairs: %zu, %zu active", here, active);
	flow_item(f, "packets/s: %s sent, %s received", a, b);
	flow_item(f, "B/s: %s sent, %s received", c, d);
	flow_item(f, "requests/s: %s", e);
	flow_end(f);
}

static void put_losses(struct flow *f, const struct report *r)
{
	__u64 retransmits = 0, timeouts = 0, naks = 0, rnrs = 0, drops = 0;

	for (size_t i = 0; i < r->list.n; i++) {
		const struct qp_row *row = &r->list.at[i]->row;

		if (row->elsewhere)
			continue;
		retransmits += row->retransmits;
		timeouts += row->timeouts;
		naks += row->naks[SENT] + row->naks[RECEIVED];
		rnrs += row->rnrs[SENT] + row->rnrs[RECEIVED];
		drops += row->dropped;
	}
	if (r->session.driver.kind == DRIVER_STOCK)
		return;
	flow_item(f, "since the start:");
	flow_item(f, "retransmissions %" PRIu64, (uint64_t)retransmits);
	flow_item(f, "timeouts %" PRIu64, (uint64_t)timeouts);
	flow_item(f, "NAKs %" PRIu64, (uint64_t)naks);
	flow_item(f, "RNR NAKs %" PRIu64, (uint64_t)rnrs);
	flow_item(f, "drops %" PRIu64, (uint64_t)drops);
	for (int i = 0; i < DROP_PLACES; i++) {
		if (r->other_drops[i])
			flow_item(f, "no queue pair's: %s %" PRIu64, drop_name(i),
				  (uint64_t)r->other_drops[i]);
	}
	flow_end(f);
}

static void put_notes(struct flow *f, const struct report *r, const struct config *config)
{
	const char *missing;

	if (r->session.driver.kind == DRIVER_STOCK) {
		flow_item(f, "stock driver:");
		for (int i = 0; (missing = report_missing(r, i)); i++)
			flow_item(f, "no %s", missing);
		flow_end(f);
	}
	if (config->one_of > 1) {
		flow_item(f, "sample: one of %u packets and requests;", config->one_of);
		flow_item(f, "numbers per second are estimates");
		flow_end(f);
	}
	if (!strcmp(r->session.accelerator, "tcg")) {
		flow_item(f, "emulated processor (TCG): times count its work, not real time");
		flow_end(f);
	}
	if (r->list.hidden) {
		flow_item(f, "left out: %zu queue pairs;", r->list.hidden);
		flow_item(f, "whose they are is shown only with cap_sys_ptrace");
		flow_end(f);
	}
	if (r->lost || r->missed) {
		flow_item(f, "lost: %" PRIu64 " events without room, %" PRIu64 " nested",
			  (uint64_t)r->lost, (uint64_t)r->missed);
		flow_end(f);
	}
}

static void put_place_chosen(struct flow *f, const char *kind, const char *name)
{
	char text[200];

	if (!name)
		return;
	text_escaped(text, sizeof(text), name);
	flow_item(f, "%s %s", kind, text);
}

static void put_selection(struct flow *f, const struct config *config, const struct frame *frame)
{
	const struct selection *s = &config->selection;
	char name[STAGE_NAME], filter[4 * sizeof(s->filter)], pids[PLACE_PIDS_TEXT];

	stage_choice_name(config->stage, name);
	flow_item(f, "by %s%s", sort_key_name(s->sort), s->reverse ? ", reversed" : "");
	flow_item(f, "stage %s", name);
	if (s->group != GROUP_NONE)
		flow_item(f, "a row for each %s", group_key_name(s->group));
	put_place_chosen(f, "PID", place_options_pids(&config->places, pids));
	put_place_chosen(f, "cgroup", config->places.cgroup);
	put_place_chosen(f, "netns", config->places.netns);
	if (s->filter[0]) {
		text_escaped(filter, sizeof(filter), s->filter);
		flow_item(f, "filter '%s'", filter);
	}
	if (frame->height)
		flow_item(f, "view %s", view_name(config->view));
	if (frame->paused)
		flow_item(f, "PAUSED");
	if (frame->height)
		flow_item(f, "h: help");
	flow_end(f);
}

static void put_help(struct flow *f)
{
	for (int i = 0; i < SORTS; i++)
		flow_item(f, "%c by %s", sort_key_letter(i), sort_key_name(i));
	flow_item(f, "r reverse");
	flow_end(f);
	flow_item(f, "v next view: columns that come first");
	flow_item(f, "t T next, previous stage");
	flow_item(f, "i idle queue pairs");
	flow_item(f, "g group by command, PID, device, peer, cgroup, netns");
	flow_item(f, "f filter: text in command, peer or device, or a QPN or PID");
	flow_item(f, "p pause");
	flow_item(f, "+ - longer, shorter interval");
	flow_item(f, "arrows, page keys: scroll");
	flow_item(f, "q quit");
	flow_end(f);
	flow_item(f, "P50 P99 P99.9: work requests, doorbell to completion.");
	flow_item(f, "STG50 ...: the stage.");
	flow_item(f, "> sent, < received.");
	flow_item(f, "%%CPU: of its tasks, 100 is one CPU.");
	flow_end(f);
}

static void put_rows(struct flow *f, const struct report *r, const struct config *config,
		     struct frame *frame)
{
	struct columns columns;
	struct qp_groups groups = {};
	bool grouped = config->selection.group != GROUP_NONE;
	size_t n, shown;
	const struct qp_row **rows = rows_shown(&groups, &r->list, &config->selection, &n);

	shown = n;
	if (frame->height) {
		int room = frame->height - f->lines - 1;

		shown = room > 0 ? room : 0;
		if (frame->top + shown > n)
			frame->top = n > shown ? n - shown : 0;
		if (frame->top + shown > n)
			shown = n - frame->top;
	}
	columns_choose(&columns, config->view, grouped, frame->width, rows + frame->top,
		       rows ? shown : 0);
	columns_print_head(f->out, &columns);
	fputc('\n', f->out);
	for (size_t i = 0; rows && i < shown; i++) {
		columns_print_row(f->out, &columns, rows[frame->top + i]);
		fputc('\n', f->out);
	}
	free(rows);
	qp_groups_free(&groups);
}

void print_screen(FILE *out, const struct report *report, const struct config *config,
		  struct frame *frame)
{
	struct flow flow = {.out = out, .width = frame->width};

	put_place(&flow, report);
	put_sums(&flow, report);
	put_losses(&flow, report);
	put_notes(&flow, report, config);
	put_selection(&flow, config, frame);
	if (frame->prompt) {
		fprintf(out, "filter: %s_", frame->prompt);
		fputc('\n', out);
	} else {
		fputc('\n', out);
	}
	flow.lines++;
	if (frame->help)
		put_help(&flow);
	else
		put_rows(&flow, report, config, frame);
}
