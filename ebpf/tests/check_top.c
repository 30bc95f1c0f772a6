// SPDX-License-Identifier: GPL-2.0-only
/* rxetop's lines: numbers are never cut, names are escaped, rows are selected and sorted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "qp_group.h"
#include "text.h"
#include "top_columns.h"

static void check_number(double value, const char *expected)
{
	char text[TEXT_NUMBER];

	text_number(text, value);
	CHECK(!strcmp(text, expected), "%f is '%s', not '%s'", value, text, expected);
}

static void check_time(__u64 ns, const char *expected)
{
	char text[TEXT_NUMBER];

	text_time(text, ns);
	CHECK(!strcmp(text, expected), "%llu is '%s', not '%s'", (unsigned long long)ns, text,
	      expected);
}

/* what is printed is the number, to its last digit */
static void check_precision(void)
{
	srand(1);
	for (int i = 0; i < 200000; i++) {
		double value = exp(rand() * (40.0 / RAND_MAX)), scale = 1;
		char text[TEXT_NUMBER], *end;

		text_number(text, value);
		CHECK(strlen(text) <= 6, "'%s' of %f is too long", text, value);
		double shown = strtod(text, &end);
		for (const char *unit = "kMGTPE"; *end && *unit; unit++) {
			scale *= 1000;
			if (*unit == *end)
				break;
		}
		CHECK(fabs(shown * scale - value) <= fmax(0.0051 * value, 0.051), "'%s' of %f",
		      text, value);
	}
}

static void check_escapes(void)
{
	char text[16];

	text_escaped(text, sizeof(text), "a\033[2Jb");
	CHECK(!strcmp(text, "a\\x1b[2Jb"), "'%s'", text);
	text_escaped(text, sizeof(text), "\n\\\x7f\xff");
	CHECK(!strcmp(text, "\\x0a\\x5c\\x7f"), "'%s': whole escapes only", text);
	text_escaped(text, 4, "abcdef");
	CHECK(!strcmp(text, "abc"), "'%s'", text);
}

static struct qp_entry entries[3];

static void fill(struct qp_list *list)
{
	static struct qp_entry *at[3];

	for (int i = 0; i < 3; i++) {
		struct qp_row *row = &entries[i].row;

		*row = (struct qp_row){.key = {.qpn = 16777213 + i}, .listed = true};
		row->info = (struct rdma_qp){.type = 2, .state = 3, .pid = 4194304 - i};
		row->packets[SENT] = 1e6 * (3 - i) * (i != 2);
		row->counted = i != 2;
		row->work = (struct quantiles){.count = 1, .p50 = 1, .p99 = i * 1000, .p999 = ~0u};
		row->stage = row->work;
		row->retransmits = 99999999;
		row->dropped = row->drops[DROP_ICRC] = row->drops[DROP_SEQUENCE] = 99999999;
		row->peer_qpn = 16777215;
		snprintf(row->dev, sizeof(row->dev), "rxe_device_with_a_long_name");
		snprintf(row->peer, sizeof(row->peer), "fe80:1111:2222:3333:4444:5555:6666:777%d",
			 i);
		snprintf(row->comm, sizeof(row->comm), i ? "ib_send_bw" : "\033]0;x\007\n");
		at[i] = &entries[i];
	}
	*list = (struct qp_list){.at = at, .n = 3};
}

/* a queue pair that only lost packets is not idle: nobody may lose its last row */
static void check_counted(void)
{
	static struct qp_value now;
	static struct qp_counts before;
	static struct qp_interval interval;
	struct qp_row row = {};

	row_count(&row, &interval, &now, &before, 1, 1);
	CHECK(!row.counted, "nothing was counted");
	now.counts.timeouts = 1;
	row_count(&row, &interval, &now, &before, 1, 1);
	CHECK(row.counted && row.timeouts == 1, "a timeout was counted");
}

static __u32 first_of(const struct qp_list *list, const struct selection *selection, size_t count)
{
	size_t n;
	const struct qp_row **rows = select_rows(list, selection, &n);
	__u32 qpn = n ? rows[0]->key.qpn : 0;

	CHECK(n == count, "%zu rows, not %zu", n, count);
	free(rows);
	return qpn;
}

static void check_selection(const struct qp_list *list)
{
	struct selection s = {};

	CHECK(first_of(list, &s, 2) == 16777213, "the most packets first, idle ones not");
	s.reverse = true;
	CHECK(first_of(list, &s, 2) == 16777214, "reversed");
	s = (struct selection){.idle = true, .sort = SORT_LATENCY};
	CHECK(first_of(list, &s, 3) == 16777215, "the slowest first");
	s.sort = SORT_PID;
	CHECK(first_of(list, &s, 3) == 16777215, "the smallest PID first");
	snprintf(s.filter, sizeof(s.filter), "send");
	CHECK(first_of(list, &s, 2) == 16777215, "by command");
	snprintf(s.filter, sizeof(s.filter), "4194304");
	CHECK(first_of(list, &s, 1) == 16777213, "by PID");
	snprintf(s.filter, sizeof(s.filter), "16777214");
	CHECK(first_of(list, &s, 1) == 16777214, "by QPN");
	snprintf(s.filter, sizeof(s.filter), ":7770");
	CHECK(first_of(list, &s, 1) == 16777213, "by peer");
	s.filter[0] = '\0';
	entries[2].row.elsewhere = true;
	CHECK(first_of(list, &s, 2) == 16777214, "one that is elsewhere is not shown");
	entries[2].row.elsewhere = false;
}

/* the sum of each group's queue pairs, and the quantiles of what all of them took */
static void check_groups(struct qp_list *list)
{
	struct selection s = {.group = GROUP_COMMAND};
	struct qp_groups groups = {};
	const struct qp_row **rows;
	size_t n;

	entries[1].interval.work.bucket[loglin_bucket(1000)] = 98;
	entries[2].interval.work.bucket[loglin_bucket(1000000)] = 2;
	CHECK(qp_groups_make(&groups, list, &s), "out of memory");
	CHECK(groups.n == 2, "%zu groups by command", groups.n);
	rows = select_groups(&groups, &s, &n);
	CHECK(n == 2 && !strcmp(rows[0]->group, "\033]0;x\007\n"), "the most packets first");
	CHECK(rows[1]->qps == 2 && !strcmp(rows[1]->group, "ib_send_bw"), "'%s' has %zu",
	      rows[1]->group, rows[1]->qps);
	CHECK(rows[1]->packets[SENT] == 2e6 && rows[1]->retransmits == 2 * 99999999ull,
	      "the sum of both");
	CHECK(rows[1]->work.count == 100 && rows[1]->work.p50 < 1200 && rows[1]->work.p99 > 1000000,
	      "p50 %llu, p99 %llu of %llu", (unsigned long long)rows[1]->work.p50,
	      (unsigned long long)rows[1]->work.p99, (unsigned long long)rows[1]->work.count);
	free(rows);
	qp_groups_free(&groups);

	s = (struct selection){.group = GROUP_DEVICE, .filter = "send"};
	entries[2].row.elsewhere = true;
	qp_groups_make(&groups, list, &s);
	CHECK(groups.n == 1 && groups.at[0].qps == 1, "neither filtered nor elsewhere: %zu",
	      groups.at[0].qps);
	qp_groups_free(&groups);
	entries[2].row.elsewhere = false;

	s = (struct selection){.group = GROUP_CGROUP};
	qp_groups_make(&groups, list, &s);
	CHECK(groups.n == 1 && !strcmp(groups.at[0].group, "-"), "no cgroup is known");
	qp_groups_free(&groups);
}

/* every line within the width, every number whole */
static void check_lines(const struct qp_list *list, enum view view, bool grouped, int width)
{
	const struct qp_row *rows[] = {&list->at[0]->row, &list->at[1]->row};
	struct columns columns;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	columns_choose(&columns, view, grouped, width, rows, 2);
	columns_print_head(out, &columns);
	fputc('\n', out);
	columns_print_row(out, &columns, rows[0]);
	fputc('\n', out);
	fclose(out);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		CHECK(!width || (int)strlen(line) <= width, "view %d: %zu of %d: '%s'", view,
		      strlen(line), width, line);
	free(text);
}

static void check_widths(const struct qp_list *list, bool grouped)
{
	static const struct {
		enum view view;
		const char *in_80, *of_groups; /* the last of its own columns */
	} views[] = {
		{VIEW_LATENCY, " P99.9", " GROUP"},
		{VIEW_PEER, " PKT/S", " GROUP"},
		{VIEW_STAGE, " STG999", " GROUP"},
		{VIEW_LOSSES, " REASONS", " GROUP"},
	};

	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		const struct qp_row *rows[] = {&list->at[0]->row, &list->at[1]->row};
		struct columns columns;
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);

		columns_choose(&columns, views[i].view, grouped, 80, rows, 2);
		columns_print_head(out, &columns);
		fclose(out);
		CHECK(strstr(text, grouped ? views[i].of_groups : views[i].in_80),
		      "view %zu lacks a column: '%s'", i, text);
		free(text);
		for (int width = 8; width < 300; width++)
			check_lines(list, views[i].view, grouped, width);
		check_lines(list, views[i].view, grouped, 0);
	}
}

int main(void)
{
	struct qp_list list;

	check_number(0, "0");
	check_number(0.44, "0.4");
	check_number(9.94, "9.9");
	check_number(99999, "99999");
	check_number(99999.5, "100k");
	check_number(999499, "999k");
	check_number(999500, "1.00M");
	check_number(12.34e9, "12.3G");
	check_number(NAN, "-");
	check_time(0, "0ns");
	check_time(999, "999ns");
	check_time(1000, "1.00us");
	check_time(999499, "999us");
	check_time(999500, "1.00ms");
	check_time(4294967295, "4.29s");
	check_precision();
	check_escapes();
	check_counted();
	fill(&list);
	check_selection(&list);
	check_groups(&list);
	check_widths(&list, false);
	for (int i = 0; i < 3; i++)
		memset(entries[i].row.group, 'g', sizeof(entries[i].row.group) - 1);
	check_widths(&list, true);
	return check_end("top");
}
