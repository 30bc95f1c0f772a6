// SPDX-License-Identifier: GPL-2.0-only
/* The writer of metrics: both formats, escapes, numbers. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "openmetrics.h"

static void write_all(FILE *out, bool openmetrics)
{
	struct metrics m = {.out = out, .openmetrics = openmetrics};
	const struct label labels[] = {{"dev", "a\"\\\n\377"}, {"dir", "tx"}, {}};

	metrics_family(&m, "x", METRIC_INFO, NULL, "What.");
	metrics_count(&m, labels, 1);
	metrics_family(&m, "x_cpu_seconds", METRIC_COUNTER, "seconds", "Time.");
	metrics_seconds(&m, NULL, 1000000001);
	metrics_family(&m, "x_ratio", METRIC_GAUGE, "ratio", "Part.");
	metrics_number(&m, NULL, 0.0625);
	metrics_family(&m, "x_wait_seconds", METRIC_HISTOGRAM, "seconds", "Waits.");
	metrics_bucket(&m, labels + 1, 1.6e-08, 2);
	metrics_histogram_end(&m, labels + 1, 3, 5);
	metrics_bucket(&m, NULL, 1.073741824, 0);
	metrics_end(&m);
}

#define LABELS "{dev=\"a\\\"\\\\\\\\x0a\\\\xff\",dir=\"tx\"}"
#define HISTOGRAM                                                                          \
	"x_wait_seconds_bucket{dir=\"tx\",le=\"1.6e-08\"} 2\n"                             \
	"x_wait_seconds_bucket{dir=\"tx\",le=\"+Inf\"} 3\n"                                \
	"x_wait_seconds_count{dir=\"tx\"} 3\nx_wait_seconds_sum{dir=\"tx\"} 0.000000005\n" \
	"x_wait_seconds_bucket{le=\"1.073741824\"} 0\n"

static const char as_openmetrics[] =
	"# HELP x What.\n# TYPE x info\nx_info" LABELS " 1\n"
	"# HELP x_cpu_seconds Time.\n# TYPE x_cpu_seconds counter\n# UNIT x_cpu_seconds seconds\n"
	"x_cpu_seconds_total 1.000000001\n"
	"# HELP x_ratio Part.\n# TYPE x_ratio gauge\n# UNIT x_ratio ratio\nx_ratio 0.0625\n"
	"# HELP x_wait_seconds Waits.\n# TYPE x_wait_seconds histogram\n"
	"# UNIT x_wait_seconds seconds\n" HISTOGRAM "# EOF\n";

static const char as_text[] =
	"# HELP x_info What.\n# TYPE x_info gauge\nx_info" LABELS " 1\n"
	"# HELP x_cpu_seconds_total Time.\n# TYPE x_cpu_seconds_total counter\n"
	"x_cpu_seconds_total 1.000000001\n"
	"# HELP x_ratio Part.\n# TYPE x_ratio gauge\nx_ratio 0.0625\n"
	"# HELP x_wait_seconds Waits.\n# TYPE x_wait_seconds histogram\n" HISTOGRAM;

static void check_format(bool openmetrics, const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	write_all(out, openmetrics);
	fclose(out);
	CHECK(!strcmp(text, expected), "%s\n%s", text, expected);
	free(text);
}

int main(void)
{
	check_format(true, as_openmetrics);
	check_format(false, as_text);
	return check_end("openmetrics");
}
